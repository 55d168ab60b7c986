"""The rules of visibility in streams, one in each test."""

import asyncio
import json

from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts
from stream_server.hub.visibility.viewer_cache import ViewerCache
from tests.stream_server.hub.world import Graph, World, user_json
from tests.waiting import eventually


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

    viewers = ViewerCache(RestrictedAccounts(), read, max_kept_relations=0)
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


async def test_a_protected_user_receives_the_own_posts(world: World) -> None:
    world.publish("protect", user=user_json("1"))
    _, own = world.open(user="1", track="red")
    _, other = world.open(user="2", track="red")
    await world.until_live(2)
    world.post("red", uid="1", audience="followers:1")
    world.post("red for all", uid="7")
    await own.expect_texts("red", "red for all")
    await other.expect_texts("red for all")


async def test_a_user_who_left_a_protected_user_receives_the_delete_of_what_came_before(world: World) -> None:
    world.publish("protect", user=user_json("7"))
    post = world.post("red", uid="7", audience="followers:7")
    world.graphs["1"] = Graph(ended={("7", 1): post.position.ms})
    _, former = world.open(user="1", track="red")
    _, stranger = world.open(user="2", track="red")
    await world.until_live(2)
    world.delete(post)
    world.post("red for all", uid="8")
    await former.expect_kinds("hello", "delete", "post")
    await stranger.expect_kinds("hello", "post")


async def test_an_restricted_accounts_ignores_entries_from_before_it_was_read(world: World) -> None:
    early = world.publish("protect", user=user_json("7"))
    restricted_accounts = RestrictedAccounts()
    restricted_accounts.load(frozenset({"8"}), frozenset({"7"}), early.position)
    restricted_accounts.apply(early)
    assert (restricted_accounts.protected, restricted_accounts.restricted) == ({"8"}, {"7", "8"})
    restricted_accounts.apply(world.publish("reinstate", "-", uid="7"))
    restricted_accounts.apply(world.publish("protect", user=user_json("9")))
    assert (restricted_accounts.suspended, restricted_accounts.restricted) == (set(), {"8", "9"})


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
