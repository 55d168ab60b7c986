"""A replay shows nothing that was deleted, and the delete reaches each client that was sent the post or comment."""

import json
from typing import Any

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START
from tests.stream_server.hub.world import Graph, Socket, World, user_json
from tests.waiting import eventually

KINDS = "post,delete,like,unlike,comment,uncomment,user_update"


def _inner(post: Entry) -> Any:
    return json.loads(post.wire)["status"]


async def _until_end(world: World, *sockets: Socket) -> None:
    """Publish a post that all sockets receive, and wait for it."""
    world.post("red end", uid="8")
    await eventually(lambda: all(socket.texts()[-1:] == ["red end"] for socket in sockets), what="the end")


def _like_and_comment(world: World, post: Entry) -> Entry:
    """Like and unlike a post, and comment on it twice, with notifications. Returns the first comment."""
    world.publish("like", source=user_json("8"), status=_inner(post))
    world.publish("unlike", source=user_json("8"), status=_inner(post))
    comments = [world.comment(text, "8", post) for text in ("red first", "red second")]
    for comment in comments:
        sent = {"id": "9", "kind": "comment", "source": user_json("8"), **json.loads(comment.wire)}
        world.publish("notification", "users:7", notification=sent)
    return comments[0]


async def test_no_entry_of_a_replay_shows_a_deleted_comment(tiny_buffer: World) -> None:
    post = tiny_buffer.post("red words", uid="7")
    tiny_buffer.uncomment(_like_and_comment(tiny_buffer, post))
    _, firehose = tiny_buffer.open(LOG_START, user="1", firehose="true", kinds=KINDS)
    _, own = tiny_buffer.open_user_stream("7", LOG_START)
    tiny_buffer.post("red end", uid="7")
    for socket in (firehose, own):
        await socket.expect_last_text("red end")
        sent = [kind for kind in socket.kinds() if kind != "notification"]
        assert sent == ["hello", "post", "like", "unlike", "comment", "uncomment", "post"]
        assert b"red first" not in socket.received
        assert b"red second" in socket.received
    assert own.kinds().count("notification") == 1


async def test_a_replayed_quote_and_its_notification_have_no_deleted_original(tiny_buffer: World) -> None:
    original = tiny_buffer.post("secret words", uid="7")
    quote = tiny_buffer.post("red quote", uid="8", original=original)
    sent = {"id": "9", "kind": "quote", "source": user_json("8"), "status": _inner(quote)}
    tiny_buffer.publish("notification", "users:7", notification=sent)
    tiny_buffer.delete(original)
    tiny_buffer.graphs["7"] = Graph(following={"8": 1})
    _, own = tiny_buffer.open_user_stream("7", LOG_START)
    await _until_end(tiny_buffer, own)
    assert own.kinds() == ["hello", "post", "notification", "delete", "post"]
    status: Any = own.messages()[1]["status"]
    notification: Any = own.messages()[2]["notification"]
    assert (status["original"], notification["status"]["original"]) == (None, None)
    assert b"secret" not in own.received


@pytest.mark.parametrize("audience", ["followers:7", "group:91", "users:7,8"])
async def test_an_uncomment_reaches_the_audience_of_its_comment(tiny_buffer: World, audience: str) -> None:
    """A user who left the group since, and one who came since, get it too: each could be sent the comment."""
    world = tiny_buffer
    world.publish("protect", user=user_json("7"))
    post = world.post("status", uid="7", audience=audience)
    start, now = world.hub.head, world.now_ms
    world.graphs["7"] = world.graphs["8"] = Graph(groups={"91": 1}, following={"7": 1})
    comment = world.comment("red indeed", "8", post, audience)
    middle = world.hub.head
    which = "groups" if audience.startswith("group") else "following"
    relations: dict[str, Any] = {
        "2": {}, "3": {which: now + 50}, "4": {"ended": now + 50}, "5": {"ended": now},
        "6": {which: now + 400},
    }  # fmt: skip
    for uid, relation in relations.items():
        end = relation.pop("ended", None)
        ended = {} if end is None else {("7", 1): end, ("91", 1): end}
        now_held = {name: {"7": when, "91": when} for name, when in relation.items()}
        world.graphs[uid] = Graph(head=middle, ended=ended, **now_held)
    world.now_ms += 200
    live = {uid: world.open_user_stream(uid)[1] for uid in "78234"}
    await world.until_live(5)
    world.uncomment(comment)
    world.now_ms += 400
    late = {uid: world.open_user_stream(uid, middle)[1] for uid in "7823456"}
    early = world.open_user_stream("8", start)[1]
    sockets = [*live.values(), *late.values(), early]
    for uid in late:
        world.publish("list_create", f"users:{uid}", list={"id": "1", "uid": uid})
    await eventually(lambda: all(socket.kinds()[-1] == "list_create" for socket in sockets))
    reached = {"7", "8", "3", "4"} if audience.startswith("group") else {"7", "8"}
    for sent in (live, late):
        assert {uid for uid, socket in sent.items() if "uncomment" in socket.kinds()} == reached
    assert early.kinds()[:2] == ["hello", "uncomment"]


async def test_an_uncomment_reaches_a_stream_that_has_unfollowed_the_author_since(world: World) -> None:
    """And one that follows the author only since: its client may have got the comment from a page."""
    post = world.post("status", uid="7")
    _, me = world.open(user="1", following={"8"}, follow="@me", kinds=KINDS)
    _, new = world.open(user="2", following=set(), follow="@me", kinds=KINDS)
    await world.until_live(2)
    comment = world.comment("indeed", "8", post)
    world.relate("unfollow", "1", "8")
    world.relate("follow", "2", "8")
    world.uncomment(comment)
    world.relate("follow", "1", "8")
    await _until_end(world, me, new)
    assert me.kinds() == ["hello", "comment", "uncomment", "post"]
    assert new.kinds() == ["hello", "uncomment", "post"]
