"""The rules of visibility in streams, one in each test."""

import asyncio
import json

from stream_server.events.position import LOG_START
from stream_server.hub.visibility.viewer import AccountStatus
from stream_server.hub.visibility.viewer_cache import ViewerCache
from tests.stream_server.hub.world import Graph, World, user_json
from tests.waiting import eventually


async def test_a_block_moves_its_user_from_the_shared_group_to_a_private_view(world: World) -> None:
    _, ann = world.open(user="1", track="red")
    _, bob = world.open(user="2", track="red")
    await world.until_live(2)
    assert len(world.hub.live.index) == 1
    world.post("red 1", uid="7")
    world.publish("block", "users:1", source=user_json("1"), target=user_json("7"))
    assert len(world.hub.live.index) == 2
    world.post("red 2", uid="7")
    world.post("red 3", uid="8")
    await eventually(lambda: bob.texts() == ["red 1", "red 2", "red 3"])
    await eventually(lambda: ann.texts() == ["red 1", "red 3"])
    world.publish("unblock", "users:1", source=user_json("1"), target=user_json("7"))
    world.post("red 4", uid="7")
    await eventually(lambda: ann.texts()[-1] == "red 4")
    assert ann.kinds().count("post") == 3


async def test_a_suspension_ends_the_streams_of_a_user_and_hides_the_posts(world: World) -> None:
    _, mine = world.open(user="7", firehose="true")
    _, other = world.open(user="1", firehose="true")
    await world.until_live(2)
    world.post("before", uid="7")
    world.publish("suspend", "-", uid="7")
    await eventually(lambda: mine.finished)
    assert mine.messages()[-1]["code"] == "suspended"
    _, late = world.open(user="7", firehose="true")
    await eventually(lambda: late.kinds() == ["hello", "goodbye"])
    world.post("after", uid="8")
    await eventually(lambda: other.texts() == ["before", "after"])
    _, again = world.open(LOG_START, user="1", firehose="true")
    await eventually(lambda: again.texts() == ["after"])
    world.publish("reinstate", "-", uid="7")
    _, third = world.open(LOG_START, user="1", firehose="true")
    await eventually(lambda: third.texts() == ["before", "after"])


async def test_the_stream_of_a_user_has_the_events_that_concern_the_user(world: World) -> None:
    world.graphs["1"] = Graph(following={"7": 1}, groups={"91": 1})
    _, socket = world.open_user_stream("1")
    await world.until_live()
    status = {"id": "4096", "uid": "1", "message": "mine"}
    world.post("followed", uid="7")
    world.post("stranger", uid="8")
    world.post("mine", uid="1")
    world.post("in the group", uid="8", audience="group:91")
    world.post("in another", uid="8", audience="group:92")
    world.publish("like", source=user_json("8"), status=status)
    world.publish("like", source=user_json("7"), status={**status, "uid": "8"})
    world.publish("follow", source=user_json("8"), target=user_json("1"))
    world.publish("message", "users:8,1", message={"id": "1", "uid": "8", "message": "psst"})
    world.publish("message", "users:8,9", message={"id": "2", "uid": "8", "message": "psst"})
    world.publish("notification", "users:1", notification={"id": "1", "kind": "like", "source": user_json("8")})
    world.publish("list_create", "users:1", list={"id": "1", "uid": "1"})
    world.publish("group_join", "group:93", group={"id": "93", "uid": "8"}, user=user_json("1"))
    world.publish("group_update", "group:93", group={"id": "93", "uid": "8"})
    world.publish("group_leave", "group:93", group={"id": "93", "uid": "8"}, user=user_json("1"))
    world.publish("group_update", "group:93", group={"id": "93", "uid": "8"})
    world.publish("user_update", user=user_json("7"))
    world.publish("user_update", user=user_json("8"))
    await eventually(lambda: socket.kinds()[-1] == "user_update")
    assert socket.texts() == ["followed", "mine", "in the group"]
    assert socket.kinds()[4:] == [
        "like", "follow", "message", "notification", "list_create", "group_join", "group_update", "group_leave",
        "user_update",
    ]  # fmt: skip
    assert world.hub.counters.malformed == 0


async def test_events_for_named_users_or_a_group_come_only_on_the_stream_of_the_user(world: World) -> None:
    world.graphs["1"] = Graph(groups={"91": 1}, following={"8": 1})
    kinds = "post,like,comment"
    _, follow = world.open(user="1", follow="8", kinds=kinds)
    _, track = world.open(user="1", track="psst", kinds=kinds)
    _, me = world.open(user="1", following={"8"}, follow="@me", kinds=kinds)
    await world.until_live(3)
    world.post("psst", uid="8", audience="group:91")
    world.publish("like", "users:1,8", source=user_json("8"), status={"id": "4096", "uid": "1", "message": "x"})
    world.post("psst openly", uid="8")
    for socket in (follow, track, me):
        await socket.expect_kinds("hello", "post")
        assert socket.texts() == ["psst openly"]


async def test_a_gap_ends_streams_with_a_viewer_because_it_may_hold_a_block(world: World) -> None:
    _, live = world.open(user="1", track="red")
    stale = world.viewer("1")
    await world.until_live()
    last = world.post("red 1", uid="7").position
    world.graphs["1"] = Graph(blocks={"7": 1})
    world.hub.move_head(last._replace(n=last.n + 5, ms=last.ms + 5), "trimmed", 5)
    world.now_ms += 100
    world.post("red 2", uid="7")
    await eventually(lambda: live.finished)
    assert live.kinds() == ["hello", "post", "gap", "goodbye"]
    assert live.messages()[-1]["code"] == "resync"
    assert world.viewer("1") is not stale
    _, again = world.open(user="1", track="red")
    await world.until_live()
    world.post("red 3", uid="7")
    world.post("red 4", uid="8")
    await eventually(lambda: again.texts() == ["red 4"])


async def test_an_entry_published_while_a_viewer_is_read_is_applied_once(world: World) -> None:
    going = asyncio.Event()

    async def read(user: str) -> Graph:
        await going.wait()
        return Graph(following={"8": 1}, head=first.position)

    viewers = ViewerCache(AccountStatus(), read, max_kept_relations=0)
    asked = asyncio.create_task(viewers.get("1"))
    other = asyncio.create_task(viewers.get("1"))
    await asyncio.sleep(0)  # both tasks start and wait for the read
    first = world.relate("unfollow", "1", "8")
    second = world.relate("follow", "1", "9")
    for entry in (first, second):
        for viewer in viewers.affected_by(entry):
            viewer.apply(entry)
    going.set()
    found = {id(await asked), id(await other)}
    following = set(asked.result().following)
    assert (len(found), following, len(viewers)) == (1, {"8", "9"}, 1)
    del asked, other, viewer
    await asyncio.sleep(0)  # the loop lets go of the finished tasks
    assert len(viewers) == 0


async def test_an_account_status_ignores_entries_from_before_it_was_read(world: World) -> None:
    early = world.publish("protect", user=user_json("7"))
    account_status = AccountStatus()
    account_status.load(frozenset({"8"}), frozenset({"7"}), early.position)
    account_status.apply(early)
    assert (account_status.protected, account_status.restricted) == ({"8"}, {"7", "8"})
    account_status.apply(world.publish("reinstate", "-", uid="7"))
    account_status.apply(world.publish("protect", user=user_json("9")))
    assert (account_status.suspended, account_status.restricted) == (set(), {"8", "9"})


async def test_each_kind_of_entry_has_its_author_users_text_and_audience(world: World) -> None:
    status = {"id": "4096", "uid": "2", "message": "the status"}
    comment = {"id": "5", "uid": "1", "status": "4096", "message": "my #word"}
    like = world.publish("like", source=user_json("1"), status=status).event
    assert (like.author, like.user_ids, like.status_id, like.text) == ("1", frozenset(("1", "2")), "4096", "")
    said = world.publish("comment", comment=comment, status=status).event
    assert (said.author, said.user_ids, said.status_id) == ("1", frozenset(("1", "2")), "4096")
    assert "#word" in said.terms
    assert "status" not in said.terms
    changed = world.publish("user_update", user=user_json("3")).event
    assert (changed.author, changed.user_ids) == ("3", frozenset(("3",)))
    assert (changed.is_sampled, changed.is_public) == (False, True)
    block = world.publish("block", "users:1", source=user_json("1"), target=user_json("2"))
    assert (block.actors, block.event.is_public, block.audience_users) == (frozenset(("1",)), False, ["1"])
    quote = world.post("quote", uid="1", original=world.post("original", uid="2"))
    assert (quote.actors, quote.quoted_author) == (frozenset(("1", "2")), "2")
    assert json.loads(quote.without_original().wire)["status"]["original"] is None
    assert world.hub.counters.malformed == 0


async def test_the_delete_of_a_status_reaches_a_user_who_was_notified_of_it(world: World) -> None:
    _, ann = world.open_user_stream("1")
    await world.until_live()
    for uid in ("7", "8"):
        post = world.post(f"hi of {uid}", uid=uid)
        if uid == "7":
            status = json.loads(post.wire)["status"]
            notice = {"id": "9", "kind": "mention", "source": user_json(uid), "status": status}
            world.publish("notification", "users:1", notification=notice)
        world.delete(post)
    await ann.expect_kinds("hello", "notification", "delete")
