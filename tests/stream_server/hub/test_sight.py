"""Who may see what, in streams: each rule by itself."""

import asyncio
import json
from typing import Any

from stream_server.events.position import LOG_START
from stream_server.hub.visibility.account_status import AccountStatus
from stream_server.hub.visibility.viewer_cache import ViewerCache
from tests.stream_server.hub.world import Graph, World
from tests.waiting import eventually


def _user(uid: str) -> dict[str, str]:
    return {"id": uid}


async def _live(world: World, count: int) -> None:
    await eventually(lambda: world.hub.count_live_clients() == count, what=f"{count} live")


async def test_equal_filters_share_a_group_until_something_personal_concerns_one(world: World) -> None:
    """A block takes effect at its place: what waits is sent before, the blocker has a group alone, nothing is lost."""
    _, ann = world.open(user="1", track="red")
    _, bob = world.open(user="2", track="red")
    await _live(world, 2)
    assert len(world.hub.index) == 1
    world.post("red 1", uid="7")
    world.tell("block", "users:1", source=_user("1"), target=_user("7"))
    assert len(world.hub.index) == 2
    world.post("red 2", uid="7")
    world.post("red 3", uid="8")
    await eventually(lambda: bob.texts() == ["red 1", "red 2", "red 3"])
    await eventually(lambda: ann.texts() == ["red 1", "red 3"])
    world.tell("unblock", "users:1", source=_user("1"), target=_user("7"))
    world.post("red 4", uid="7")
    await eventually(lambda: ann.texts()[-1] == "red 4")
    assert ann.kinds().count("post") == 3


async def test_a_block_hides_both_from_each_other(world: World) -> None:
    """Whom one is blocked by is as silent as whom one blocks."""
    _, blocker = world.open(user="1", track="red")
    _, blocked = world.open(user="7", track="red")
    await _live(world, 2)
    world.tell("block", "users:1", source=_user("1"), target=_user("7"))
    world.post("red of 1", uid="1")
    world.post("red of 7", uid="7")
    world.post("red of 8", uid="8")
    await eventually(lambda: blocker.texts() == ["red of 1", "red of 8"])
    await eventually(lambda: blocked.texts() == ["red of 7", "red of 8"])
    assert "block" not in blocked.kinds()


async def test_protected_posts_reach_approved_followers_and_their_author_only(world: World) -> None:
    """Live and on replay; an impersonal stream never, and of older public posts only the delete."""
    world.graphs["1"] = Graph(following={"7": 1})
    old = world.post("red old", uid="7")
    world.tell("protect", user=_user("7"))
    start = world.hub.head
    streams = {uid: world.open(user=uid, track="red")[1] for uid in ("1", "2", "7")}
    _, firehose = world.open(user="1", firehose="true")
    await _live(world, 4)
    secret = world.post("red secret", uid="7", audience="followers:7")
    world.delete(old)
    world.post("red open", uid="8")
    gone = f"-{old.position.status_number}"
    for uid, socket in streams.items():
        mine = [gone, "red open"] if uid == "2" else ["red secret", gone, "red open"]
        await socket.tells(*mine)
    await eventually(lambda: firehose.texts() == [gone, "red open"])
    for uid in ("1", "2"):
        _, again = world.open(start, user=uid, track="red")
        await again.ends_with("red open")
        assert ("red secret" in again.texts()) == (uid == "1")
    world.delete(secret)
    world.post("red end", uid="8")
    await eventually(lambda: streams["2"].texts()[-1] == "red end")
    assert f"-{secret.position.status_number}" not in streams["2"].texts()
    await eventually(lambda: streams["1"].texts()[-2:] == [f"-{secret.position.status_number}", "red end"])


async def test_the_delete_of_a_post_for_followers_finds_them_after_protection_ended(world: World) -> None:
    """Its follower shares everybody's view by then, and is drawn out of it for the delete; nobody else hears of it."""
    world.graphs["1"] = Graph(following={"7": 1})
    world.tell("protect", user=_user("7"))
    secret = world.post("red secret", uid="7", audience="followers:7")
    world.tell("unprotect", user=_user("7"))
    _, follower = world.open(user="1", track="red")
    _, other = world.open(user="2", track="red")
    await _live(world, 2)
    assert len(world.hub.index) == 1
    world.delete(secret)
    world.post("red end", uid="8")
    await eventually(lambda: other.texts() == ["red end"])
    await eventually(lambda: follower.texts() == [f"-{secret.position.status_number}", "red end"])


async def test_a_quote_is_shown_without_what_may_not_be_seen_and_a_repost_not_at_all(world: World) -> None:
    """The same in the view that many share and in one's own; an impersonal stream leaves both out."""
    theirs = world.post("red original", uid="7")
    _, shared = world.open(user="2", track="red")
    world.graphs["1"] = Graph(blocks={"9": 1})
    _, alone = world.open(user="1", track="red")
    _, firehose = world.open(user="1", firehose="true")
    await _live(world, 3)
    world.tell("protect", user=_user("7"))
    world.post("red quote", uid="8", original=theirs)
    world.post("", uid="8", original=theirs)
    world.post("red end", uid="8")
    for socket in (shared, alone):
        await socket.tells("red quote", "red end")
        status: Any = socket.messages()[1]["status"]
        assert status["original"] is None
        assert b"red original" not in socket.received
    await eventually(lambda: firehose.texts() == ["red end"])


async def test_suspension_ends_all_streams_of_a_user_and_silences_them(world: World) -> None:
    """Goodbye says why; who comes meanwhile is sent away too; nobody is shown their posts, also on replay."""
    _, mine = world.open(user="7", firehose="true")
    _, other = world.open(user="1", firehose="true")
    await _live(world, 2)
    world.post("before", uid="7")
    world.tell("suspend", "-", uid="7")
    await eventually(lambda: mine.finished)
    assert mine.messages()[-1]["code"] == "suspended"
    _, late = world.open(user="7", firehose="true")
    await eventually(lambda: late.kinds() == ["hello", "goodbye"])
    world.post("after", uid="8")
    await eventually(lambda: other.texts() == ["before", "after"])
    _, again = world.open(LOG_START, user="1", firehose="true")
    await eventually(lambda: again.texts() == ["after"])
    world.tell("reinstate", "-", uid="7")
    _, third = world.open(LOG_START, user="1", firehose="true")
    await eventually(lambda: third.texts() == ["before", "after"])


async def test_ones_own_stream_has_what_concerns_one(world: World) -> None:
    """By those followed and oneself, done to oneself, addressed to oneself, and in one's groups."""
    world.graphs["1"] = Graph(following={"7": 1}, groups={"91": 1})
    _, socket = world.own("1")
    await _live(world, 1)
    status = {"id": "4096", "uid": "1", "message": "mine"}
    world.post("followed", uid="7")
    world.post("stranger", uid="8")
    world.post("mine", uid="1")
    world.post("in the group", uid="8", audience="group:91")
    world.post("in another", uid="8", audience="group:92")
    world.tell("like", source=_user("8"), status=status)
    world.tell("like", source=_user("7"), status={**status, "uid": "8"})
    world.tell("follow", source=_user("8"), target=_user("1"))
    world.tell("message", "users:8,1", message={"id": "1", "uid": "8", "message": "psst"})
    world.tell("message", "users:8,9", message={"id": "2", "uid": "8", "message": "psst"})
    world.tell("notification", "users:1", notification={"id": "1", "kind": "like", "source": _user("8")})
    world.tell("list_create", "users:1", list={"id": "1", "uid": "1"})
    world.tell("group_join", "group:93", group={"id": "93", "uid": "8"}, user=_user("1"))
    world.tell("group_update", "group:93", group={"id": "93", "uid": "8"})
    world.tell("group_leave", "group:93", group={"id": "93", "uid": "8"}, user=_user("1"))
    world.tell("group_update", "group:93", group={"id": "93", "uid": "8"})
    world.tell("user_update", user=_user("7"))
    world.tell("user_update", user=_user("8"))
    await eventually(lambda: socket.kinds()[-1] == "user_update")
    assert socket.texts() == ["followed", "mine", "in the group"]
    assert socket.kinds()[4:] == [
        "like", "follow", "message", "notification", "list_create", "group_join", "group_update", "group_leave",
        "user_update",
    ]  # fmt: skip
    assert world.hub.counters.malformed == 0


async def test_what_is_for_certain_people_only_never_comes_on_the_other_streams(world: World) -> None:
    """Neither by following an author nor by a word, whoever asks."""
    world.graphs["1"] = Graph(groups={"91": 1}, following={"8": 1})
    kinds = "post,like,comment"
    _, follow = world.open(user="1", follow="8", kinds=kinds)
    _, track = world.open(user="1", track="psst", kinds=kinds)
    _, me = world.open(user="1", following={"8"}, follow="@me", kinds=kinds)
    await _live(world, 3)
    world.post("psst", uid="8", audience="group:91")
    world.tell("like", "users:1,8", source=_user("8"), status={"id": "4096", "uid": "1", "message": "x"})
    world.post("psst openly", uid="8")
    for socket in (follow, track, me):
        await socket.hears("hello", "post")
        assert socket.texts() == ["psst openly"]


async def test_what_was_lost_may_have_been_a_block_so_personal_streams_begin_anew(world: World) -> None:
    """After a gap nobody is shown anything by sets that may be wrong; who comes back has them read again."""
    _, live = world.open(user="1", track="red")
    stale = world.viewer("1")
    await _live(world, 1)
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
    await _live(world, 1)
    world.post("red 3", uid="7")
    world.post("red 4", uid="8")
    await eventually(lambda: again.texts() == ["red 4"])


async def test_what_passes_while_a_viewer_is_read_is_in_it_once(world: World) -> None:
    """An entry that is in what was read is not applied again, one behind it is."""
    going = asyncio.Event()

    async def read(user: str) -> Graph:
        await going.wait()
        return Graph(following={"8": 1}, head=first.position)

    viewers = ViewerCache(AccountStatus(), read)
    asked = asyncio.create_task(viewers.get("1"))
    other = asyncio.create_task(viewers.get("1"))
    await asyncio.sleep(0)
    first = world.graph("unfollow", "1", "8")
    second = world.graph("follow", "1", "9")
    for entry in (first, second):
        for viewer in viewers.affected_by(entry):
            viewer.apply(entry)
    going.set()
    found = {id(await asked), id(await other)}
    following = set(asked.result().following)
    assert (len(found), following, len(viewers)) == (1, {"8", "9"}, 1)
    del asked, other, viewer
    await asyncio.sleep(0)
    assert len(viewers) == 0


async def test_standing_that_was_read_is_not_changed_by_what_it_holds_already(world: World) -> None:
    """The log is read on from the hub's head, which may lie below the place at which the sets were read."""
    early = world.tell("protect", user=_user("7"))
    standing = AccountStatus()
    standing.load(frozenset({"8"}), frozenset({"7"}), early.position)
    standing.apply(early)
    assert (standing.protected, standing.restricted) == ({"8"}, {"7", "8"})
    standing.apply(world.tell("reinstate", "-", uid="7"))
    standing.apply(world.tell("protect", user=_user("9")))
    assert (standing.suspended, standing.restricted) == (set(), {"8", "9"})


async def test_every_kind_is_found_by_what_it_is_about(world: World) -> None:
    """The table: who is found by follow, what track reads, what sample and firehose have."""
    status = {"id": "4096", "uid": "2", "message": "the status"}
    comment = {"id": "5", "uid": "1", "status": "4096", "message": "my #word"}
    like = world.tell("like", source=_user("1"), status=status).event
    assert (like.author, like.user_ids, like.status_id, like.text) == ("1", frozenset(("1", "2")), "4096", "")
    said = world.tell("comment", comment=comment, status=status).event
    assert (said.author, said.user_ids, said.status_id) == ("1", frozenset(("1", "2")), "4096")
    assert "#word" in said.terms
    assert "status" not in said.terms
    changed = world.tell("user_update", user=_user("3")).event
    assert (changed.author, changed.user_ids, changed.is_sampled, changed.is_public) == (
        "3",
        frozenset(("3",)),
        False,
        True,
    )
    block = world.tell("block", "users:1", source=_user("1"), target=_user("2"))
    assert (block.actors, block.event.is_public, block.audience_users) == (frozenset(("1",)), False, ["1"])
    quote = world.post("quote", uid="1", original=world.post("original", uid="2"))
    assert (quote.actors, quote.quoted_author) == (frozenset(("1", "2")), "2")
    assert json.loads(quote.without_original().wire)["status"]["original"] is None
    assert world.hub.counters.malformed == 0


async def test_who_was_told_of_a_status_hears_of_its_end(world: World) -> None:
    """A mention by somebody not followed comes as a notification that shows the status; its delete comes too."""
    _, ann = world.own("1")
    await _live(world, 1)
    for uid in ("7", "8"):
        post = world.post(f"hi of {uid}", uid=uid)
        if uid == "7":
            status = json.loads(post.wire)["status"]
            told = {"id": "9", "kind": "mention", "source": _user(uid), "status": status}
            world.tell("notification", "users:1", notification=told)
        world.delete(post)
    await ann.hears("hello", "notification", "delete")
