"""What was deleted is read by nobody afterwards, in whatever entry it stands; its end comes to whoever was shown it."""

import json
from typing import Any

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START
from tests.stream_server.hub.world import Graph, Socket, World
from tests.waiting import eventually

KINDS = "post,delete,like,unlike,comment,uncomment,user_update"


def _user(uid: str) -> dict[str, str]:
    return {"id": uid}


def _inner(post: Entry) -> Any:
    return json.loads(post.wire)["status"]


async def _live(world: World, count: int) -> None:
    await eventually(lambda: world.hub.count_live_clients() == count, what=f"{count} live")


async def _until_end(world: World, *sockets: Socket) -> None:
    """Something that all of them ask for, last."""
    world.post("red end", uid="8")
    await eventually(lambda: all(socket.texts()[-1:] == ["red end"] for socket in sockets), what="the end")


def _done(world: World, post: Entry) -> Entry:
    """A post is liked, and no longer; commented on twice, which its author is told; the first comment is given."""
    world.tell("like", source=_user("8"), status=_inner(post))
    world.tell("unlike", source=_user("8"), status=_inner(post))
    comments = [world.comment(text, "8", post) for text in ("red first", "red second")]
    for comment in comments:
        told = {"id": "9", "kind": "comment", "source": _user("8"), **json.loads(comment.wire)}
        world.tell("notification", "users:7", notification=told)
    return comments[0]


async def test_a_deleted_status_is_in_no_entry_of_a_replay(narrow: World) -> None:
    """Neither as a post nor in what was done to it, nor what was said under it; only ids are left."""
    post = narrow.post("secret words", uid="7")
    comment = _done(narrow, post)
    narrow.uncomment(comment)
    narrow.delete(post)
    _, firehose = narrow.open(LOG_START, user="1", firehose="true", kinds=KINDS)
    _, follow = narrow.open(LOG_START, user="1", follow="7,8", kinds=KINDS)
    _, own = narrow.own("7", LOG_START)
    narrow.post("red end", uid="7")
    for socket in (firehose, follow, own):
        await socket.ends_with("red end")
        assert socket.kinds() == ["hello", "uncomment", "delete", "post"]
        assert socket.messages()[1]["status"] == {"id": _inner(post)["id"], "uid": "7", "deleted": True}
        for words in (b"secret", b"first", b"second"):
            assert words not in socket.received


async def test_a_comment_that_was_taken_back_is_in_no_entry_of_a_replay(narrow: World) -> None:
    """Nor in the notification of it; the status under which it stood is still there, in its other entries."""
    post = narrow.post("red words", uid="7")
    narrow.uncomment(_done(narrow, post))
    _, firehose = narrow.open(LOG_START, user="1", firehose="true", kinds=KINDS)
    _, own = narrow.own("7", LOG_START)
    narrow.post("red end", uid="7")
    for socket in (firehose, own):
        await socket.ends_with("red end")
        told = [kind for kind in socket.kinds() if kind != "notification"]
        assert told == ["hello", "post", "like", "unlike", "comment", "uncomment", "post"]
        assert b"red first" not in socket.received
        assert b"red second" in socket.received
    assert own.kinds().count("notification") == 1


async def test_the_original_of_what_one_is_told_of_is_null_when_it_is_gone(narrow: World) -> None:
    """A quote and the notification of it stay, without what they quoted."""
    original = narrow.post("secret words", uid="7")
    quote = narrow.post("red quote", uid="8", original=original)
    told = {"id": "9", "kind": "quote", "source": _user("8"), "status": _inner(quote)}
    narrow.tell("notification", "users:7", notification=told)
    narrow.delete(original)
    narrow.graphs["7"] = Graph(following={"8": 1})
    _, own = narrow.own("7", LOG_START)
    await _until_end(narrow, own)
    assert own.kinds() == ["hello", "post", "notification", "delete", "post"]
    status: Any = own.messages()[1]["status"]
    notification: Any = own.messages()[2]["notification"]
    assert (status["original"], notification["status"]["original"]) == (None, None)
    assert b"secret" not in own.received


@pytest.mark.parametrize(
    "asked", [{"track": "red"}, {"follow": "8"}, {"follow": "7"}, {"sample": "100"}, {"firehose": "true"}]
)
async def test_the_end_of_a_comment_is_found_as_the_comment_was(narrow: World, asked: dict[str, Any]) -> None:
    """By its words, by either person and by the status' share, live and by cursor; what did not match does not end."""
    post = narrow.post("status", uid="7")
    start = narrow.hub.head
    _, live = narrow.open(user="1", kinds="comment,uncomment,user_update", **asked)
    _, other = narrow.open(user="1", kinds="comment,uncomment,post", track="status,end")
    await _live(narrow, 2)
    comment = narrow.comment("red indeed", "8", post)
    middle = narrow.hub.head
    narrow.uncomment(comment)
    await eventually(lambda: live.kinds() == ["hello", "comment", "uncomment"])
    ids: list[Any] = [message["comment"] for message in live.messages()[1:]]
    assert ids[0]["id"] == ids[1]["id"]
    assert ids[1]["deleted"]
    for since in (start, middle):
        _, late = narrow.open(since, user="1", kinds="comment,uncomment", **asked)
        await late.hears("hello", "uncomment")
    await _until_end(narrow, other)
    assert other.kinds() == ["hello", "post"]


@pytest.mark.parametrize("audience", ["followers:7", "group:91", "users:7,8"])
async def test_the_end_of_a_comment_reaches_whom_the_comment_reached(narrow: World, audience: str) -> None:
    """Followers with consent, members, or these two; not who came after the comment, and nobody else."""
    post = narrow.post("status", uid="7", audience=audience)
    start, now = narrow.hub.head, narrow.now_ms
    narrow.graphs["7"] = narrow.graphs["8"] = Graph(groups={"91": 1}, following={"7": 1})
    narrow.graphs["2"] = Graph()
    comment = narrow.comment("red indeed", "8", post, audience)
    middle = narrow.hub.head
    narrow.graphs["3"] = Graph(groups={"91": now + 100}, following={"7": now + 100}, head=middle)
    narrow.now_ms += 200
    live = {uid: narrow.own(uid)[1] for uid in ("7", "8", "2", "3")}
    await _live(narrow, 4)
    narrow.uncomment(comment)
    late = {uid: narrow.own(uid, middle)[1] for uid in live}
    early = narrow.own("8", start)[1]
    sockets = [*live.values(), *late.values(), early]
    for uid in (*live, "8"):
        narrow.tell("list_create", f"users:{uid}", list={"id": "1", "uid": uid})
    await eventually(lambda: all(socket.kinds()[-1] == "list_create" for socket in sockets))
    reached = {"7", "8"}
    for told in (live, late):
        assert {uid for uid, socket in told.items() if "uncomment" in socket.kinds()} == reached
    assert early.kinds()[:2] == ["hello", "uncomment"]


async def test_the_end_of_a_comment_comes_without_the_status_that_is_hidden_by_then(narrow: World) -> None:
    """Its author is protected since: who was shown the comment hears that it is gone, and reads nothing else."""
    post = narrow.post("secret words", uid="7")
    comment = narrow.comment("red indeed", "8", post)
    narrow.graphs["2"] = Graph(blocks={"99": 1})
    narrow.graphs["3"] = Graph(following={"7": 1})
    streams = [narrow.open(user=uid, track="red", kinds=KINDS)[1] for uid in ("1", "2", "3")]
    streams.append(narrow.open(user="1", firehose="true", kinds=KINDS)[1])
    await _live(narrow, 4)
    narrow.tell("protect", user=_user("7"))
    narrow.uncomment(comment)
    start = comment.position
    streams += [narrow.open(start, user=uid, track="red", kinds=KINDS)[1] for uid in ("1", "2", "3")]
    streams.append(narrow.open(start, user="1", firehose="true", kinds=KINDS)[1])
    await _until_end(narrow, *streams)
    for number, socket in enumerate(streams):
        follower = number % 4 == 2
        assert socket.kinds()[-2:] == ["uncomment", "post"], number
        assert (b"secret" in socket.received) == follower, number


async def test_who_stopped_following_hears_of_the_end_of_a_comment(world: World) -> None:
    """It was sent, so it ends where it was sent, whoever is followed by now; who was not sent it does not."""
    post = world.post("status", uid="7")
    _, me = world.open(user="1", following={"8"}, follow="@me", kinds=KINDS)
    _, new = world.open(user="2", following=set(), follow="@me", kinds=KINDS)
    await _live(world, 2)
    comment = world.comment("indeed", "8", post)
    world.graph("unfollow", "1", "8")
    world.graph("follow", "2", "8")
    world.uncomment(comment)
    world.graph("follow", "1", "8")
    await _until_end(world, me, new)
    assert me.kinds() == ["hello", "comment", "uncomment", "post"]
    assert new.kinds() == ["hello", "post"]


@pytest.mark.parametrize("asked", [{"track": "red"}, {"follow": "7"}, {"follow": "@me"}, {"firehose": "true"}, {}])
async def test_what_the_suspended_wrote_before_is_not_replayed(narrow: World, asked: dict[str, Any]) -> None:
    """Posts, what was done to them and by them, hidden by cursor; deletes pass, and all comes back."""
    world, start = narrow, narrow.hub.head
    post, gone = world.post("red secret", uid="7"), world.post("red gone", uid="7")
    world.tell("like", source=_user("8"), status=_inner(post))
    world.comment("red secret too", "7", world.post("status", uid="9"))
    world.tell("notification", "users:1", notification={"id": "9", "kind": "follow", "source": _user("7")})
    world.delete(gone)
    world.tell("suspend", "-", uid="7")
    world.graphs["1"] = Graph(following={"7": 1, "8": 1})

    def opened() -> Socket:
        if not asked:
            return world.own("1", start)[1]
        following = {"7", "8"} if asked.get("follow") == "@me" else None
        return world.open(start, user="1", following=following, kinds=KINDS, **asked)[1]

    hidden = opened()
    await _live(world, 1)
    world.tell("reinstate", "-", uid="7")
    shown = opened()
    world.post("red last", uid="7")
    for socket in (hidden, shown):
        await socket.ends_with("red last")
    assert b"secret" not in hidden.received
    assert f"-{_inner(gone)['id']}" in hidden.texts()
    assert "notification" not in hidden.kinds()
    assert b"red secret" in shown.received
