"""Replays and polls go by today's permissions, and tell what became hidden as live streams do."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from stream_server.events.position import LOG_START, Position
from stream_server.hub.delivery import Delivery
from stream_server.hub.poll import PollResult
from tests.stream_server.hub.world import Graph, World, user_json
from tests.waiting import eventually

Asked = dict[str, Any]
FILTERS: list[Asked] = [{"track": "red"}, {"follow": "7"}, {"firehose": "true"}, {"sample": "100"}]
KINDS = "post,delete,like,comment,uncomment,follow,unfollow,protect,unprotect"


async def polled(world: World, since: Position, user: str = "1", **asked: Any) -> PollResult:
    """Poll without waiting."""
    return await world.poll(world.request(since, user=user, **asked)).run(0)


def deliveries(answer: PollResult) -> list[Delivery]:
    return [item for item in answer.items if isinstance(item, Delivery)]


def kinds_of(answer: PollResult) -> list[str]:
    return [delivery.entry.kind for delivery in deliveries(answer)]


async def replayed_kinds(world: World, since: Position, **asked: Any) -> list[object]:
    """What a stream from ``since`` gets up to the head."""
    stream, socket = world.open(since, **asked)
    await eventually(lambda: stream.is_live, what="live")
    return socket.kinds()[1:]


@pytest.mark.parametrize("ended", ["7", "8", "7,8"])
async def test_a_reaction_between_protected_users_is_shown_when_neither_is_protected(world: World, ended: str) -> None:
    for uid in ("7", "8"):
        world.publish("protect", user=user_json(uid))
    start = world.hub.head
    post = world.post("red secret", uid="7", audience="followers:7")
    world.comment("red indeed", "8", post, "users:8,7")
    for uid in ended.split(","):
        world.publish("unprotect", user=user_json(uid))
    shown = ["comment"] if ended == "7,8" else []
    world.graphs["1"] = Graph(following={"7": 1, "8": 1})
    for user in ("1", "2"):
        for asked in ({"track": "indeed"}, {"follow": "8"}):
            assert await replayed_kinds(world, start, user=user, kinds="comment", **asked) == shown
    assert await replayed_kinds(world, start, firehose="true", kinds="comment") == shown
    _, own = world.open_user_stream("8", start)
    await world.until_live(6)
    assert own.kinds().count("comment") == 1


async def test_the_own_unfollow_of_a_protected_user_reaches_polls_that_wait_and_replays(world: World) -> None:
    asked: Asked = {"follow": "7", "kinds": "unfollow"}
    world.graphs["1"], start = Graph(following={"7": 1}), world.hub.head
    world.publish("protect", user=user_json("7"))
    poll = asyncio.create_task(world.poll(world.request(None, **asked)).run(30))
    await world.until_live()
    world.relate("unfollow", "1", "7")
    assert kinds_of(await poll) == ["unfollow"]
    assert await replayed_kinds(world, start, **asked) == kinds_of(await polled(world, start, **asked)) == ["unfollow"]
    assert await replayed_kinds(world, start, user="2", **asked) == []


@pytest.mark.parametrize("relations", [Graph(), Graph(mutes={"9": 1})], ids=["public view", "private view"])
async def test_the_unfollow_by_a_protected_user_reaches_only_the_own_stream_of_whom_it_names(
    world: World, relations: Graph
) -> None:
    asked: Asked = {"follow": "1", "kinds": "unfollow"}
    world.publish("protect", user=user_json("7"))
    world.graphs["1"], start = relations, world.hub.head
    stream, live = world.open(**asked)
    own, told = world.open_user_stream("1")
    await world.until_live(2)
    world.relate("unfollow", "7", "1")
    for each in (stream, own):
        world.hub.live.flush(each)
    assert (live.kinds()[1:], told.kinds()[1:]) == ([], ["unfollow"])
    assert await replayed_kinds(world, start, **asked) == kinds_of(await polled(world, start, **asked)) == []


@pytest.mark.parametrize("relations", [Graph(), Graph(mutes={"9": 1})], ids=["public view", "private view"])
async def test_the_end_of_a_comment_that_was_never_open_reaches_the_own_streams_of_its_users_only(
    world: World, relations: Graph
) -> None:
    """Also if neither is protected today, when a replay would show the comment."""
    for uid in ("7", "8"):
        world.publish("protect", user=user_json(uid))
    start = world.hub.head
    post = world.post("red", uid="7", audience="followers:7")
    world.uncomment(world.comment("red indeed", "8", post, "users:8,7"))
    for uid in ("7", "8"):
        world.publish("unprotect", user=user_json(uid))
    world.graphs["8"] = relations
    asked: Asked = {"user": "8", "track": "indeed", "kinds": "comment,uncomment"}
    assert await replayed_kinds(world, start, **asked) == kinds_of(await polled(world, start, **asked)) == []
    _, own = world.open_user_stream("8", start)
    await world.until_live(2)
    assert own.kinds().count("uncomment") == 1


@pytest.mark.parametrize("relations", [Graph(), Graph(mutes={"9": 1})], ids=["public view", "private view"])
@pytest.mark.parametrize("asked", [{"follow": "7"}, {"follow": "1"}], ids=["followed", "follower"])
async def test_the_follow_of_a_protected_user_reaches_the_follower_on_every_way(
    world: World, asked: Asked, relations: Graph
) -> None:
    asked = {**asked, "kinds": "follow"}
    world.publish("protect", user=user_json("7"))
    world.graphs["1"], start = relations, world.hub.head
    live = [world.open(user=user, **asked) for user in ("1", "2")]
    live.append(world.open(user="1", firehose="true", kinds="follow"))
    await world.until_live(3)
    poll = asyncio.create_task(world.poll(world.request(None, **asked)).run(30))
    await world.until_live(4)
    world.relate("follow", "1", "7")
    assert kinds_of(await poll) == ["follow"]
    for stream, _ in live:
        world.hub.live.flush(stream)
    assert [socket.kinds()[1:] for _, socket in live] == [["follow"], [], []]
    assert await replayed_kinds(world, start, **asked) == kinds_of(await polled(world, start, **asked)) == ["follow"]


async def test_the_end_of_a_group_reaches_replays_of_its_former_members(world: World) -> None:
    world.graphs["1"], world.graphs["2"] = Graph(groups={"91": 1}), Graph(ended={("91", 1): 2})
    start, members = world.hub.head, [world.viewer("1"), world.viewer("2")]
    world.post("in the group", uid="7", audience="group:91")
    world.publish("group_delete", "group:91", group={"id": "91", "uid": "7"})
    streams = [world.open_user_stream(uid, start)[1] for uid in "123"]
    await world.until_live(3)
    assert [socket.kinds()[1:] for socket in streams] == [["group_delete"], [], []]
    assert len(members) == 2


def _block(world: World) -> None:
    world.relate("unfollow", "1", "7")
    world.publish("block", "users:1", source=user_json("1"), target=user_json("7"))


def _mute(world: World) -> None:
    world.publish("mute", "users:1", source=user_json("1"), target=user_json("7"))


def _protect_again(world: World) -> None:
    for kind in ("unprotect", "protect"):
        world.publish(kind, user=user_json("7"))


CHANGES: dict[str, Callable[[World], Any]] = {
    "unfollow": lambda world: world.relate("unfollow", "1", "7"),
    "block": _block,
    "mute": _mute,
    "protect": lambda world: world.publish("protect", user=user_json("7")),
    "protect again": _protect_again,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("audience", ["public", "followers:7"])
@pytest.mark.parametrize("kept", [True, False], ids=["viewer kept", "viewer read again"])
async def test_a_poll_gets_the_delete_of_what_an_earlier_poll_was_sent(
    tiny_buffer: World, change: str, audience: str, *, kept: bool
) -> None:
    """Also if the post is hidden from its user by then. Others who could not see it do not get the delete."""
    world = tiny_buffer
    world.graphs["1"] = Graph(following={"7": 1})
    if audience != "public":
        world.publish("protect", user=user_json("7"))
    post = world.post("red", uid="7", audience=audience)
    asked: Asked = {"track": "red", "kinds": "post,delete"}
    first = await polled(world, LOG_START, **asked)
    assert kinds_of(first) == ["post"]
    stranger = await polled(world, LOG_START, user="2", **asked)
    before = world.now_ms
    CHANGES[change](world)
    if not kept:
        world.graphs["1"] = _relations_after(change, before, world)
        world.hub.viewer_cache.clear()
    second = await polled(world, first.position, **asked)
    assert kinds_of(second) == []
    world.delete(post)
    for since in (first, second):
        assert kinds_of(await polled(world, since.position, **asked)) == ["delete"]
        assert await replayed_kinds(world, since.position, **asked) == ["delete"]
    sees_it = ["delete"] if audience == "public" else []
    assert kinds_of(await polled(world, stranger.position, user="2", **asked)) == sees_it


def _relations_after(change: str, before: int, world: World) -> Graph:
    """What a store has of user 1 after the change."""
    head, ended = world.hub.head, {("7", 1): before + 1}
    if change == "unfollow":
        return Graph(ended=ended, head=head)
    if change == "block":
        return Graph(ended=ended, blocks={"7": before + 2}, head=head)
    return Graph(following={"7": 1}, mutes={"7": before + 1} if change == "mute" else {}, head=head)


async def test_a_delete_from_before_a_follow_is_not_sent(world: World) -> None:
    """The posts of a protected user that were gone before the follow could never be seen."""
    world.publish("protect", user=user_json("7"))
    world.delete(world.post("red", uid="7", audience="followers:7"))
    for kind in ("follow", "unfollow"):
        world.graphs["1"] = Graph(following={"7": world.now_ms + 1})
        world.relate(kind, "1", "7")
        world.hub.viewer_cache.clear()
        if kind == "unfollow":
            world.graphs["1"] = Graph(ended={("7", world.now_ms - 1): world.now_ms}, head=world.hub.head)
        else:
            world.graphs["1"].head = world.hub.head
        assert kinds_of(await polled(world, LOG_START, track="red")) == []


class Appearance(NamedTuple):
    """How a post of user 7 becomes visible to user 1 after it was written, and the audience of its delete then."""

    audience: str
    happens: Callable[[World], Any]
    audience_of_delete: str


APPEARANCES = {
    "approved": Appearance("followers:7", lambda world: world.relate("follow", "1", "7"), "followers:7"),
    "opened": Appearance("followers:7", lambda world: world.publish("unprotect", user=user_json("7")), "public"),
    "unmuted": Appearance(
        "public",
        lambda world: world.publish("unmute", "users:1", source=user_json("1"), target=user_json("7")),
        "public",
    ),
    "joined": Appearance(
        "group:91",
        lambda world: world.publish("group_join", "group:91", group={"id": "91", "uid": "7"}, user=user_json("1")),
        "group:91",
    ),
}


@pytest.mark.parametrize("is_comment", [False, True], ids=["delete", "uncomment"])
@pytest.mark.parametrize("how", APPEARANCES)
async def test_what_became_visible_after_it_was_written_is_deleted_on_every_way(
    world: World, how: str, *, is_comment: bool
) -> None:
    """The client may have got it from a page. A stream or a poll that has passed it gets the delete, others' do not."""
    written, ends = APPEARANCES[how], "uncomment" if is_comment else "delete"
    if written.audience == "followers:7":
        world.publish("protect", user=user_json("7"))
    for user in "12":
        world.graphs[user] = Graph(mutes={"9": 1} | ({"7": 1} if how == "unmuted" and user == "1" else {}))
    own = [world.open_user_stream(user) for user in "12"]
    tracking = [world.open(user=user, track="red", kinds=KINDS) for user in "12"]
    await world.until_live(4)
    before = world.hub.head
    post = world.post("red", uid="7", audience=written.audience)
    made = world.comment("red indeed", "7", post, written.audience) if is_comment else post
    after = world.hub.head
    assert [kinds_of(await polled(world, before, track="red", kinds=f"post,comment,{ends}"))] == [[]]
    written.happens(world)
    (world.uncomment if is_comment else world.delete)(made, written.audience_of_delete)
    streams = own if how == "joined" else tracking
    for stream, _ in streams:
        world.hub.live.flush(stream)
    others = [ends] if written.audience_of_delete == "public" else []
    got = [[kind for kind in socket.kinds() if kind == ends] for _, socket in streams]
    assert got == [[ends], others]
    if how == "joined":
        _, again = world.open_user_stream("1", after)
        await eventually(lambda: ends in again.kinds(), what="the end on a stream that returns")
        return
    for since in (before, after):
        assert kinds_of(await polled(world, since, track="red", kinds=ends)) == [ends]
        assert await replayed_kinds(world, since, track="red", kinds=ends) == [ends]
        assert kinds_of(await polled(world, since, track="red", kinds=ends, user="2")) == others


async def test_the_uncomment_for_followers_reaches_them_also_when_the_protection_has_ended(world: World) -> None:
    """User 8 commented openly on a post of user 7, who was protected. Then 8 became protected, and 7 open."""
    world.publish("protect", user=user_json("7"))
    post = world.post("red secret", uid="7", audience="followers:7")
    said = world.comment("red indeed", "8", post, "followers:7")
    world.publish("protect", user=user_json("8"))
    world.publish("unprotect", user=user_json("7"))
    world.graphs["1"], start = Graph(following={"7": 1}), world.hub.head
    asked: Asked = {"track": "red", "kinds": "uncomment"}
    streams = [world.open(user=user, **asked) for user in "123"]
    streams.append(world.open(firehose="true", kinds="uncomment"))
    await world.until_live(4)
    poll = asyncio.create_task(world.poll(world.request(None, **asked)).run(30))
    await world.until_live(5)
    world.uncomment(said, "followers:7")
    assert kinds_of(await poll) == ["uncomment"]
    for stream, _ in streams:
        world.hub.live.flush(stream)
    assert [socket.kinds()[1:] for _, socket in streams] == [["uncomment"], [], [], []]
    for user, got in (("1", ["uncomment"]), ("2", [])):
        assert kinds_of(await polled(world, start, user=user, **asked)) == got
        assert await replayed_kinds(world, start, user=user, **asked) == got


@pytest.mark.parametrize("kept", [True, False], ids=["viewer kept", "viewer read again"])
@pytest.mark.parametrize("kind", ["uncomment", "delete"])
async def test_a_removal_reaches_followers_who_could_see_both_users_at_one_time(
    world: World, kind: str, *, kept: bool
) -> None:
    """User 7, who is protected, comments or reposts what 8 wrote, who is protected for a while since."""
    world.publish("protect", user=user_json("7"))
    post, start = world.post("red", uid="8"), world.hub.head
    is_repost, audience = kind == "delete", "followers:7"
    made = world.post("", "7", post, audience) if is_repost else world.comment("red", "7", post, audience)
    reached = {"before": [kind], "while": [], "both": [kind], "after": [kind]}
    asked: Asked = {"track": "red", "kinds": kind}
    streams = {user: world.open(user=user, **asked) for user in reached}
    await world.until_live(len(reached))
    graphs = {user: Graph() for user in reached}

    def relate(verb: str, user: str, whom: str) -> None:
        graph, now_ms = graphs[user], world.relate(verb, user, whom).position.ms
        if verb == "follow":
            graph.following[whom] = now_ms
        else:
            graph.ended[whom, graph.following.pop(whom)] = now_ms

    relate("follow", "before", "7")
    relate("unfollow", "before", "7")
    closed = world.publish("protect", user=user_json("8"))
    for verb in ("follow", "unfollow"):
        for user, whom in (("while", "7"), ("both", "8"), ("both", "7")):
            relate(verb, user, whom)
    opened = world.publish("unprotect", user=user_json("8"))
    relate("follow", "after", "7")
    open_times = [(0, closed.position.status_number), (opened.position.status_number, None)]
    (world.delete if is_repost else world.uncomment)(made, audience, open_times=open_times)
    for stream, socket in streams.values():
        world.hub.live.flush(stream)
        assert socket.kinds()[1:] == reached[stream.user_id]
    if not kept:
        world.graphs = {user: replace(graph, head=world.hub.head) for user, graph in graphs.items()}
        world.hub.viewer_cache.clear()
    for user, kinds in reached.items():
        assert kinds_of(await polled(world, start, user=user, **asked)) == kinds
        assert await replayed_kinds(world, start, user=user, **asked) == kinds
