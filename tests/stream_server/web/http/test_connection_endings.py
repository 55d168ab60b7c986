"""Each event that may end a connection, in each of its states, on a real socket."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import pytest
from aiohttp import web

from stream_server.runtime.fair_queue import FairQueue
from stream_server.web.http.app_keys import HUB
from stream_server.web.http.connection import Connection
from stream_server.web.http.connection_states import CLOSED, CLOSING, STATES, Event, ImpossibleEvent, State
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.front_door import FrontDoor
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.byte_budget import ByteLimits
from stream_server.web.limits.connections import NO_ROOM_FOR_REQUEST
from stream_server.web.route import Request
from tests.stream_server import tokens
from tests.stream_server.web.world import World, replace_handler
from tests.waiting import PATIENCE, eventually

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
STREAM = b"GET /v1/stream?track=a HTTP/1.1\r\nHost: a\r\n\r\n"
HALF_A_POST = b"POST %b\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
LONG_ANSWER_BYTES = 1_000_000
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)

COLUMNS = (Event.REFUSAL, Event.CLOSE, Event.DRAIN, Event.DEADLINE, Event.EVICTION, Event.ABORT)
OUTCOMES = {
    "HEAD": "close close close close abort abort",
    "IDLE": "close close close close abort abort",
    "QUEUED": "close close stays abort never abort",
    "BODY": "abort close stays abort abort abort",
    "RUNNING": "abort close stays abort abort abort",
    "REST": "abort close close close abort abort",
    "SENDING": "abort close close never abort abort",
    "CLOSING": "never close close close abort abort",
    "CLOSED": "nothing nothing nothing nothing nothing nothing",
}
"""What each event of `COLUMNS` does in each state. It is written here a second time, and by hand.

``close`` sends what was written, ``abort`` does not, and both end the connection. In a state that ``stays`` as it is,
the connection lives on. The server cannot cause the event in a state with ``never``.
"""

PAIRS = [
    pytest.param(state, event, outcome, id=f"{event.name} in {state}")
    for state, outcomes in OUTCOMES.items()
    for event, outcome in zip(COLUMNS, outcomes.split(), strict=True)
]


class Made(NamedTuple):
    """A connection in the state that a test wants, and its client.

    ``left_bytes`` is the number of bytes that the server has written and the client has not read, without the head.
    """

    connection: Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    left_bytes: int


Make = Callable[[str], Awaitable[Made]]


@pytest.fixture
async def door(app: web.Application) -> AsyncIterator[FrontDoor]:
    """A server with small buffers of the kernel, on which no time is over by itself."""
    listening = socket.create_server(("127.0.0.1", 0))
    made = FrontDoor(app, timeouts=ConnectionTimeouts(linger_seconds=900.0), shutdown_seconds=0.1)
    await made.open([listening])
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    for budget in (made.held_bytes, made.unsent_bytes):
        budget.limits = budget.limits._replace(free=0)
    yield made
    await made.close()


@pytest.fixture
async def make(
    app: web.Application, world: World, door: FrontDoor, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Make]:
    """Return what makes a connection in a state."""
    go_on, writers = asyncio.Event(), list[asyncio.StreamWriter]()
    ann = await world.user("ann")

    async def wait(_: Request) -> web.StreamResponse:
        await go_on.wait()
        return web.Response(text="at last")

    async def answer_at_length(_: Request) -> web.StreamResponse:
        return web.Response(body=b"x" * LONG_ANSWER_BYTES)

    async def make(state: str) -> Made:
        token = f"Authorization: Bearer {tokens.fresh(ann)}\r\n"  # Redis is asked about it
        sent = {
            "HEAD": b"",
            "QUEUED": STREAM.replace(b"\r\n\r\n", f"\r\n{token}\r\n".encode()),
            "BODY": HALF_A_POST % b"/v1/users HTTP/1.1",
            "REST": HALF_A_POST % b"/v1/nothing HTTP/1.1",
            "CLOSING": HALF_A_POST % b"/v1/users HTTP/2.0",
        }.get(state, HEALTH)
        if state == "QUEUED":
            monkeypatch.setattr(app[LIMITS], "openings", FairQueue(0, "too many", 900.0))
        if state == "RUNNING":
            replace_handler(monkeypatch, "/healthz", wait)
        if state == "SENDING":
            replace_handler(monkeypatch, "/healthz", answer_at_length)
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, door.addresses[0][:2])
            reader, writer = await asyncio.open_connection(sock=client.dup(), limit=2**22)
        if state == "SENDING":
            assert isinstance(writer.transport, asyncio.Transport)
            writer.transport.pause_reading()
        writers.append(writer)
        writer.write(sent)
        await eventually(lambda: len(door.connections) == 1)
        (connection,) = door.connections
        left_bytes = LONG_ANSWER_BYTES if state == "SENDING" else 0
        if state in {"IDLE", "REST", "CLOSING"}:
            async with asyncio.timeout(PATIENCE):
                await reader.readuntil(b"}" if state == "IDLE" else b"}}")
        if state == "CLOSED":
            connection.end(Event.ABORT)
        await eventually(lambda: connection.cycle.state.name == state, what=f"the state {state}")
        return Made(connection, reader, writer, left_bytes)

    yield make
    go_on.set()
    for writer in writers:
        writer.transport.abort()
    await eventually(lambda: not door.connections)


async def read_rest(made: Made) -> bytes:
    """Return what the client gets until the server has closed its side."""
    found = b""
    assert isinstance(made.writer.transport, asyncio.Transport)
    made.writer.transport.resume_reading()
    try:
        async with asyncio.timeout(PATIENCE):
            while part := await made.reader.read(65_536):
                found += part
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize(("state", "event", "outcome"), PAIRS)
async def test_an_event_ends_a_connection_as_its_state_says(
    door: FrontDoor, make: Make, app: web.Application, caplog: pytest.LogCaptureFixture, state: str, event: Event,
    outcome: str,
) -> None:  # fmt: skip
    made = await make(state)
    connection, before = made.connection, made.connection.cycle.state
    if outcome == "never":
        with pytest.raises(ImpossibleEvent):
            connection.end(event)
        return
    slots = len(app[LIMITS].connections)
    answer = NO_ROOM_FOR_REQUEST.encode() if event is Event.REFUSAL else b""
    connection.end(event, answer)
    if outcome in {"stays", "nothing"}:
        assert connection.cycle.state is before
        assert len(app[LIMITS].connections) == slots
        assert (connection.transport is None) == (state == "CLOSED")
        return
    assert connection.cycle.state is (CLOSED if outcome == "abort" else CLOSING)
    if outcome == "abort":
        assert (connection.transport, len(app[LIMITS].connections)) == (None, slots - 1), "at once"
        assert len(await read_rest(made)) <= made.left_bytes / 2
    else:
        rest = await read_rest(made)
        assert len(rest) >= made.left_bytes, "all that was written"
        assert rest.endswith(answer)
    made.writer.write_eof() if made.writer.can_write_eof() else None
    await eventually(lambda: not door.connections, what="the end")
    assert (len(app[LIMITS].connections), door.held_bytes.total, door.unsent_bytes.total) == (slots - 1, 0, 0)
    assert connection.task is None or connection.task.done() or connection.task.cancelling()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_an_answer_without_room_for_its_bytes_ends_its_connection(
    door: FrontDoor, make: Make, app: web.Application, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is closed to make room while it writes the answer, so the answer is over in no state."""
    made = await make("IDLE")

    async def answer_at_length(_: Request) -> web.StreamResponse:
        return web.Response(body=b"x" * LONG_ANSWER_BYTES)

    replace_handler(monkeypatch, "/healthz", answer_at_length)
    door.unsent_bytes.limits = ByteLimits(LONG_ANSWER_BYTES // 4, LONG_ANSWER_BYTES // 4, free=0)
    assert isinstance(made.writer.transport, asyncio.Transport)
    made.writer.transport.pause_reading()
    made.writer.write(HEALTH)
    await eventually(lambda: made.connection.cycle.state is CLOSED, what="the end")
    assert len(await read_rest(made)) < LONG_ANSWER_BYTES
    assert (door.unsent_bytes.total, app[LIMITS].hits.counts()["unsent_bytes"]) == (0, 1)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("more", ["", UPGRADE], ids=["events", "WebSocket"])
async def test_a_stream_without_room_for_its_first_bytes_leaves_nothing(
    door: FrontDoor, world: World, app: web.Application, caplog: pytest.LogCaptureFixture, more: str
) -> None:
    """The connection is closed to make room while the stream begins, before the stream has the transport."""
    authorization = f"Authorization: Bearer {tokens.fresh(await world.user('ann'))}\r\n"
    await world.session.close()  # it would keep the connection by which the user was made for 15 s
    await eventually(lambda: len(app[LIMITS].connections) == 0, what="the end of the first connection")
    begun = app[HUB].counters.ended_streams
    # The first message warns of each phrase, because no text has it. So it is longer than the kernel's buffers.
    marks = ",".join(f"{'.' * (number % 20 + 1)}{'-' * (number // 20 + 1)}{'!' * 20}" for number in range(300))
    door.unsent_bytes.limits = ByteLimits(100, 100, free=0)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(door.addresses[0][:2])
        client.sendall(f"GET /v1/stream?track={marks} HTTP/1.1\r\nHost: a\r\n{authorization}{more}\r\n".encode())
        await eventually(lambda: app[LIMITS].hits.counts().get("unsent_bytes"), what="an eviction")
        await eventually(begun.total, what="the end of the stream")
    assert (len(app[HUB].registry), app[HUB].live.count, app[LIMITS].streams.total()) == (0, 0, 0)
    await eventually(lambda: len(app[LIMITS].connections) == 0, what="a free slot")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_outcomes_are_complete() -> None:
    """A new state or a new event that ends a connection needs a row or a column."""
    ends = {event for state in STATES for event, to in state.moves.items() if _is_end(state, to)}
    by_client = {Event.END_OF_INPUT, Event.DETACH}
    assert ends - by_client == set(COLUMNS)
    assert [state.name for state in STATES] == list(OUTCOMES)


def _is_end(state: State, following: State) -> bool:
    return following in {CLOSING, CLOSED} and following is not state
