"""One entry notifies several users: each gets it once, live and later, and nobody else gets it."""

import json
from typing import Any

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START
from tests.stream_server.hub.world import Graph, Socket, World, user_json
from tests.waiting import eventually

RECEIVERS = ("7", "8", "9")
"""Users whom a quote mentions."""


def _notify(world: World, quote: Entry) -> Entry:
    """Notify the receivers of a quote by one entry."""
    status = json.loads(quote.wire)["status"]
    notification = {"id": "5", "kind": "mention", "source": user_json("6"), "status": status}
    return world._append(world._next(), "notification", {"wire": {"notification": notification}}, "users:7,8,9")


def _quote(world: World) -> tuple[Entry, Entry]:
    original = world.post("secret words", uid="5")
    return original, world.post("red quote", uid="6", original=original)


def _told(socket: Socket) -> list[tuple[str, bool]]:
    """The kind of each notification that a client got, and whether it shows the original."""
    notes: list[Any] = [one["notification"] for one in socket.messages() if one["kind"] == "notification"]
    return [(one["kind"], one["status"]["original"] is not None) for one in notes]


@pytest.mark.parametrize("is_live", [True, False])
async def test_each_receiver_gets_the_notification_once(tiny_buffer: World, *, is_live: bool) -> None:
    world = tiny_buffer
    _, quote = _quote(world)
    if not is_live:
        _notify(world, quote)
    sockets = {uid: world.open_user_stream(uid, None if is_live else LOG_START)[1] for uid in (*RECEIVERS, "10")}
    if is_live:
        await world.until_live(len(sockets))
        _notify(world, quote)
    status = {"id": "1", "uid": "6", "original": None}
    last = {"id": "6", "kind": "end", "source": user_json("6"), "status": status}
    world.publish("notification", "users:7,8,9,10", notification=last)
    await eventually(lambda: all(_told(socket)[-1:] == [("end", False)] for socket in sockets.values()))
    told = {uid: _told(socket)[:-1] for uid, socket in sockets.items()}
    assert told == {uid: [("mention", True)] for uid in RECEIVERS} | {"10": []}


async def test_no_receiver_gets_an_original_that_is_deleted(tiny_buffer: World) -> None:
    world = tiny_buffer
    original, quote = _quote(world)
    _notify(world, quote)
    world.delete(original)
    sockets = {uid: world.open_user_stream(uid, LOG_START)[1] for uid in RECEIVERS}
    await eventually(lambda: all(_told(socket) for socket in sockets.values()))
    assert {uid: _told(socket) for uid, socket in sockets.items()} == {uid: [("mention", False)] for uid in RECEIVERS}


async def test_a_receiver_who_mutes_the_author_of_the_original_does_not_get_it(tiny_buffer: World) -> None:
    world = tiny_buffer
    world.graphs["8"] = Graph(mutes={"5": 1})
    _, quote = _quote(world)
    _notify(world, quote)
    sockets = {uid: world.open_user_stream(uid, LOG_START)[1] for uid in RECEIVERS}
    await eventually(lambda: all(_told(sockets[uid]) for uid in ("7", "9")))
    world.publish("message", "users:8", message={"id": "1", "uid": "6", "message": "end"})
    await eventually(lambda: "message" in sockets["8"].kinds())
    assert [_told(sockets[uid]) for uid in RECEIVERS] == [[("mention", True)], [], [("mention", True)]]
