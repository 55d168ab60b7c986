"""Streams that the front door opens without aiohttp: with the same answers. Nothing is left of lost clients."""

import asyncio
import gc
import itertools
import logging
import math
import re
import socket
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from aiohttp import web

from stream_server.hub.catchup.ring import Ring
from stream_server.runtime.event_loop import TurnQueue
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.http import app_keys, front_door, middleware
from stream_server.web.http.connection import Connection
from stream_server.web.http.connection_states import Event
from stream_server.web.http.connection_timeouts import ConnectionTimeouts
from stream_server.web.http.front_door import FrontDoor
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.usual_request import StreamRoutes, UsualRequest
from stream_server.web.limits.byte_budget import ByteLimits
from stream_server.web.limits.connections import NO_ROOM_FOR_REQUEST
from tests.stream_server import tokens
from tests.stream_server.web.world import World
from tests.waiting import PATIENCE, eventually

Address = tuple[str, int]

SCOPE = "read write stream firehose"


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that the door read without aiohttp, as method and path."""
    begun: list[str] = []
    read = StreamRoutes.read

    def note(routes: StreamRoutes, connection: Connection, head: bytes) -> UsualRequest | None:
        request = read(routes, connection, head)
        if request is not None:
            begun.append(f"{request.method} {request.path}")
        return request

    monkeypatch.setattr(StreamRoutes, "read", note)
    return begun


@pytest.fixture
def remembering(app: web.Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server believe its memory of tokens, as it does while it hears the log."""
    monkeypatch.setattr(app[app_keys.TOKEN_VALIDITY_CACHE], "_heard_until", time.monotonic)
    monkeypatch.setattr(app[app_keys.TOKEN_VALIDITY_CACHE], "_max_unheard_seconds", math.inf)


class Gate:
    """Holds back what Redis says of tokens, until it is opened.

    Attributes:
        waiting: Number of questions that wait.
        ended: Number of questions that were given up or answered.
    """

    def __init__(self, app: web.Application, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = asyncio.Event()
        self.waiting = self.ended = 0
        sessions = app[app_keys.STORE].sessions
        ask = sessions.get_token_validity

        async def held_back(token: Any, **more: Any) -> Any:
            self.waiting += 1
            try:
                await self.open.wait()
                return await ask(token, **more)
            finally:
                self.waiting -= 1
                self.ended += 1

        monkeypatch.setattr(sessions, "get_token_validity", held_back)


@pytest.fixture
async def gate(app: web.Application, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """The gate before the answers of Redis about tokens, closed."""
    return Gate(app, monkeypatch)


@pytest.fixture(autouse=True)
def _nothing_is_left(app: web.Application) -> Iterator[None]:
    """After each test, no place of a stream or connection is taken."""
    yield
    assert not app[LIMITS].streams
    assert len(app[LIMITS].connections) == 0
    assert len(app[app_keys.HUB].registry) == 0


def stream_request(sub: str, query: str = "track=x", *headers: str, method: str = "GET") -> bytes:
    """Return a request for a stream."""
    token = f"Authorization: Bearer {tokens.fresh(sub, SCOPE)}"
    return "\r\n".join([f"{method} /v1/stream?{query} HTTP/1.1", "Host: a", token, *headers, "", ""]).encode()


@asynccontextmanager
async def connected(
    address: Address, app: web.Application
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect, and wait at the end until the server has noticed the disconnect."""
    before = len(app[LIMITS].connections)
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await eventually(lambda: len(app[LIMITS].connections) == before)


async def open_stream(reader: asyncio.StreamReader) -> None:
    """Wait for the first message of a stream."""
    async with asyncio.timeout(PATIENCE):
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        assert b'"kind":"hello"' in await reader.readline() + await reader.readline()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bytes]:
    """Return status, head without the date, and body of an answer."""
    async with asyncio.timeout(PATIENCE):
        head = await reader.readuntil(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"date:")]
        length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0)
        return int(lines[0].split()[1]), b"\r\n".join(lines), await reader.readexactly(length)


UPGRADE = (
    "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
)  # fmt: skip

KNOWN = {
    "plain": ("track=x", True),
    "my own": ("/v1/stream/user?kinds=post", True),
    "my own, with gzip": ("/v1/stream/user", True, "Accept-Encoding: gzip"),
    "a protocol of Twitter": ("/1.1/statuses/filter.json?track=x", True),
    "a later protocol of Twitter": ("/2/tweets/sample/stream", True),
    "a WebSocket": ("track=x", True, *UPGRADE),
    "my own WebSocket": ("/v1/stream/user", True, *UPGRADE),
    "escapes": ("track=a%20b%2Cc+d", True),
    "several": ("track=x,y&language=en&kinds=post", True),
    "rules": ("rule=t:cats%20dogs&rule=birds", True),
    "explained": ("track=x&explain=true", True),
    "whom I follow": ("follow=@me,12", True),
    "the firehose": ("firehose=true&partition=1/2", True),
    "events": ("track=x", True, "Accept: text/event-stream"),
    "gzip": ("track=x", True, "Accept-Encoding: gzip, deflate, br"),
    "an id": ("track=x", True, "X-Request-Id: abc"),
    "a page": ("track=x", True, "Origin: https://a.example", "Referer: https://a.example/", "Sec-Fetch-Mode: cors"),
    "an empty cursor": ("track=x", True, "Last-Event-ID: "),
    "never matches": ("track=!!!,x", True),
    "a name": ("follow=ann", False),
    "saved rules": ("rules=saved", False),
    "a start": ("track=x&since=-1m", False),
    "a cursor that only Redis knows": ("track=x", False, "Last-Event-ID: 0-0.0"),
    "a cursor that the process knows": ("track=x&since=1795197600000-0.0", True),
    "a rule with a login": ("rule=from:ann", False),
    "long filters": ("track=" + ",".join(f"word{number}" for number in range(200)), False),
}
"""Queries or targets with headers, and whether the process knows all that a stream with them needs."""

CHANGING = re.compile(rb"Date: [^\r]+|[0-9a-f]{16}|\d{4}-\d\d-\d\dT[0-9:.]+Z|\d{13}-\d+\.\d+")


@pytest.mark.parametrize(("target", "is_known", "headers"), [(t, k, h) for t, k, *h in KNOWN.values()], ids=KNOWN)
@pytest.mark.usefixtures("remembering")
async def test_a_stream_that_is_opened_at_once_begins_as_one_that_has_asked_redis(
    world: World, address: Address, app: web.Application, monkeypatch: pytest.MonkeyPatch, target: str,
    headers: list[str],
    is_known: bool,  # noqa: FBT001 - a parameter
) -> None:  # fmt: skip
    path, _, query = target.rpartition("?") if target.startswith("/") else ("/v1/stream", "", target)
    path, query = (path, query) if path else (query, "")
    request = stream_request(await world.user("ann"), query, *headers).replace(b"/v1/stream", path.encode(), 1)
    begun, waited = list[bytes](), list[int]()
    go_on = FrontDoor._go_on_in_task

    def note(*arguments: Any) -> bool:
        waited.append(len(begun))
        return go_on(*arguments)

    monkeypatch.setattr(FrontDoor, "_go_on_in_task", note)
    monkeypatch.setattr(Ring, "contains", lambda _, position: position.ms > 0)
    for _ in range(3):  # the process knows the token and the user after the first
        async with connected(address, app) as (reader, writer):
            writer.write(request)
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.read(65_536)
        if b"gzip" in head:
            body = zlib.decompressobj(31).decompress(body.partition(b"\r\n")[2])
        begun.append(CHANGING.sub(b"", head + body))
    assert waited == ([0] if is_known else [0, 1, 2])
    assert begun[0].startswith((b"HTTP/1.1 200 OK", b"HTTP/1.1 101"))
    assert begun[1:] == begun[:1] * 2
    assert app[app_keys.METRICS].http.requests["GET", path, 200] == 3


REFUSALS = {
    "no token": ("track=x", "Authorization: none"),
    "two tokens": ("track=x", "Authorization: Bearer x"),
    "a token in the query": ("track=x&access_token=y",),
    "no filter": ("",),
    "an unknown filter": ("nothing=x",),
    "two bases": ("firehose=true&track=x",),
    "a filter without a value": ("track=",),
    "no UTF-8": ("track=%ff",),
    "too many parameters": ("&".join(["a=1"] * 300),),
    "another media type": ("track=x", "Accept: image/png"),
    "no coding": ("track=x", "Accept-Encoding: identity;q=0, *;q=0"),
    "no cursor": ("track=x&since=never",),
    "an expectation": ("track=x", "Expect: tea"),
    "the last request": ("nothing=x", "Connection: keep-alive, Close"),
    "an option that is not close": ("nothing=x", "Connection: x-close, closed"),
}


@pytest.mark.parametrize("changes", REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_is_the_same_as_by_the_way_of_aiohttp(
    world: World, address: Address, app: web.Application, early: list[str], monkeypatch: pytest.MonkeyPatch,
    changes: tuple[str, ...],
) -> None:  # fmt: skip
    query, *headers = changes
    request = stream_request(await world.user("ann"), query, "X-Request-Id: same", *headers)
    answers = []
    for _ in range(2):
        async with connected(address, app) as (reader, writer):
            writer.write(request)
            answers.append(await read_answer(reader))
            writer.write(HEALTH)  # the connection is kept, or ends in both ways
            answers.append((0, b"", await reader.read(12)))
        monkeypatch.setattr(StreamRoutes, "read", lambda *_: None)
    assert answers[:2] == answers[2:]
    assert answers[0][0] >= 400
    assert early == ([] if "Expect" in str(headers) or "Authorization" in str(headers) else ["GET /v1/stream"])


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("is_apart", [False, True], ids=["together", "behind one that waits for Redis"])
async def test_requests_of_a_connection_are_answered_in_order(
    world: World, address: Address, app: web.Application, gate: Gate, early: list[str],
    is_apart: bool,  # noqa: FBT001 - a parameter
) -> None:  # fmt: skip
    """A refused stream, a request that aiohttp answers, and a stream."""
    uid = await world.user("ann")
    refused, rest = stream_request(uid, ""), HEALTH + stream_request(uid)
    async with connected(address, app) as (reader, writer):
        writer.write(refused if is_apart else refused + rest)
        await eventually(lambda: gate.waiting == 1)
        writer.write(rest if is_apart else b"")
        gate.open.set()
        assert [(await read_answer(reader))[0] for _ in range(2)] == [400, 200]
        await open_stream(reader)
    assert early[0] == "GET /v1/stream"


async def test_what_a_client_sends_behind_its_stream_is_ignored(
    world: World, address: Address, app: web.Application
) -> None:
    uid = await world.user("ann")
    async with connected(address, app) as (reader, writer):
        writer.write(stream_request(uid))
        await open_stream(reader)
        writer.write(stream_request(uid))
        (client,) = app[app_keys.HUB].registry.list_clients()
        client.write(b"7\r\nthe end\r\n")
        async with asyncio.timeout(PATIENCE):
            assert b"HTTP/1.1" not in await reader.readuntil(b"the end")


class LooseTransport(asyncio.Transport):
    """A transport without a socket."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing."""

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Do nothing."""


def loose_connection(door: FrontDoor) -> Connection:
    return Connection(door, asyncio.get_running_loop(), ConnectionTimeouts(), None)


def door_of(connection: Connection) -> FrontDoor:
    assert isinstance(connection._door, FrontDoor)
    return connection._door


def start_queue_of(connection: Connection) -> TurnQueue:
    return door_of(connection)._start_queue


@pytest.fixture
async def made(app: web.Application) -> AsyncIterator[tuple[Connection, LooseTransport]]:
    """A connection on a transport without a socket."""
    door = FrontDoor(app, shutdown_seconds=0.1)
    await door.open([socket.create_server(("127.0.0.1", 0))])
    connection, transport = loose_connection(door), LooseTransport()
    connection.connection_made(transport)
    yield connection, transport
    await door.close()


@pytest.mark.usefixtures("remembering")
async def test_the_relations_of_an_unknown_user_are_read_while_redis_is_asked_about_the_token(
    world: World, address: Address, app: web.Application, gate: Gate
) -> None:
    uid, viewers = await world.user("ann"), app[app_keys.HUB].viewer_cache
    async with connected(address, app) as (reader, writer):
        writer.write(stream_request(uid))
        await eventually(lambda: uid in viewers._viewers and viewers._viewers[uid].is_loaded)
        assert (gate.waiting, len(viewers._kept)) == (1, 0)
        (viewer,) = viewers._viewers.values()
        gate.open.set()
        await open_stream(reader)
        (client,) = app[app_keys.HUB].registry.list_clients()
        assert client.viewer is viewer  # so its relations were not read again


@pytest.mark.parametrize(("uid", "status"), [("404", 401), ("suspended", 403)])
async def test_a_refused_token_leaves_no_viewer(
    world: World, address: Address, app: web.Application, uid: str, status: int
) -> None:
    if uid == "suspended":
        admin, uid = await world.user("boss"), await world.user("ann")
        await app[app_keys.STORE].suspensions.suspend(admin, uid, IdempotencyKey.generate())
    viewers = app[app_keys.HUB].viewer_cache
    async with connected(address, app) as (reader, writer):
        writer.write(stream_request(uid))
        assert (await read_answer(reader))[0] == status
    await eventually(lambda: not viewers._reads)
    gc.collect()
    assert (len(viewers), len(viewers._kept)) == (0, 0)


class TestWithLimits:
    """Limits hold for streams that begin early."""

    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"limits": "connects=3 anonymous=4", "streams_per_address": 1}

    @pytest.mark.usefixtures("remembering")
    async def test_limits_refuse_as_on_other_routes_and_give_their_places_back(
        self, world: World, address: Address, app: web.Application, early: list[str]
    ) -> None:
        uid = await world.user("ann")
        await world.session.close()
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(stream_request(uid))
            await open_stream(reader)
            other_reader, other_writer = await asyncio.open_connection(*address)
            other_writer.write(stream_request(uid))
            status, head, _ = await read_answer(other_reader)
            assert (status, b"RateLimit-Remaining: 1" in head) == (429, True)
            writer.transport.abort()
            await eventually(lambda: not app[LIMITS].streams)
            other_writer.write(stream_request(uid))
            await open_stream(other_reader)
            other_writer.transport.abort()
            async with connected(address, app) as (reader, writer):
                writer.write(stream_request(uid))
                assert (await read_answer(reader))[0] == 429  # the fourth connect of the window
        assert early == ["GET /v1/stream"] * 4

    async def test_a_stream_without_a_token_is_refused_as_such_while_redis_is_down(
        self, address: Address, app: web.Application, early: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Redis would count the refusal, but nobody gets a turn to ask it."""
        openings = app[LIMITS].openings
        monkeypatch.setattr(openings, "_failing_since", -math.inf)
        monkeypatch.setattr(openings, "_free", 0)
        async with connected(address, app) as (reader, writer):
            writer.write(b"GET /v1/stream?track=x HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await read_answer(reader))[0] == 401
        assert early == ["GET /v1/stream"]


@pytest.mark.usefixtures("remembering")
async def test_a_stream_of_a_kept_viewer_waits_for_what_this_process_wrote(
    world: World, address: Address, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    async with connected(address, app) as (reader, writer):
        writer.write(stream_request(ann))
        await open_stream(reader)
    assert (await world.call("PUT", f"/v1/users/me/blocks/{bob}", ann)).status == 200
    asked = asyncio.Event()
    log = app[app_keys.STORE].log
    read_head = log.head

    async def note() -> Any:
        asked.set()
        return await read_head()

    monkeypatch.setattr(log, "head", note)
    async with connected(address, app) as (reader, writer):
        writer.write(stream_request(ann))
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
        hub = app[app_keys.HUB]
        hub.live.head = await read_head()  # this hub has no feed, which would move it
        await open_stream(reader)
        (client,) = hub.registry.list_clients()
        assert client.position == hub.head


@pytest.fixture
async def busy(
    made: tuple[Connection, LooseTransport], monkeypatch: pytest.MonkeyPatch
) -> tuple[Connection, LooseTransport]:
    """A connection of a server on which each request takes all the time of an iteration of the loop."""
    seconds = itertools.count(0.0, 2 * front_door.START_SECONDS)
    monkeypatch.setattr(start_queue_of(made[0])._budget, "_thread_time", lambda: next(seconds))
    return made


def spend_iteration(connection: Connection) -> None:
    """Use up the time in which requests may begin, until the test waits for something."""
    start_queue_of(connection).run_in_turn(lambda: None)


@pytest.mark.parametrize("parts", [1, 2, 40])
async def test_requests_that_find_no_time_begin_later_and_are_answered_in_order(
    world: World, busy: tuple[Connection, LooseTransport], early: list[str], parts: int
) -> None:
    """Their bytes count as held until then, however they come, and no timer ends the connection."""
    refused, (connection, transport) = stream_request(await world.user("ann"), ""), busy
    sent, held = refused + HEALTH + refused, door_of(connection).held_bytes
    held.limits = ByteLimits(10_000, 10_000, free=0)
    spend_iteration(connection)
    size = -(-len(sent) // parts)
    for first in range(0, len(sent), size):
        connection.data_received(sent[first : first + size])
    connection._check_deadline()
    assert (early, connection.is_busy, transport.closed) == ([], True, False)
    assert held.total == len(sent)
    await eventually(lambda: transport.written.count(b"HTTP/1.1 ") == 3 and not connection.is_busy)
    assert re.findall(rb"HTTP/1.1 (\d+) ", transport.written) == [b"400", b"200", b"400"]
    connection.connection_lost(None)


@pytest.mark.parametrize("is_cut", [False, True], ids=["its client leaves", "the server cuts it"])
async def test_a_connection_that_ends_while_its_request_waits_to_begin_leaves_nothing(
    world: World, busy: tuple[Connection, LooseTransport], early: list[str],
    is_cut: bool,  # noqa: FBT001 - a parameter
) -> None:  # fmt: skip
    request, (connection, transport) = stream_request(await world.user("ann")), busy
    tasks = asyncio.all_tasks()
    spend_iteration(connection)
    connection.data_received(request)
    if is_cut:
        connection.end(Event.ABORT)
    else:
        connection.connection_lost(None)
    await asyncio.sleep(0)
    assert (early, len(start_queue_of(connection)), transport.written, transport.closed) == ([], 0, b"", is_cut)
    assert asyncio.all_tasks() == tasks
    connection.connection_lost(None)


async def test_a_client_that_leaves_while_its_stream_waits_to_ask_redis_takes_its_bytes_along(
    world: World, app: web.Application, made: tuple[Connection, LooseTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place in the queue stays until its turn comes, and many clients may leave meanwhile."""
    openings, (connection, _) = app[LIMITS].openings, made
    monkeypatch.setattr(openings, "_free", 0)
    connection.data_received(stream_request(await world.user("ann")))
    connection.connection_lost(None)
    ((_, begin),) = openings._waiting
    assert isinstance(begin, partial)
    assert [each for each in (*begin.args, connection.cycle.request_head) if isinstance(each, bytes) and each] == []


async def test_a_stream_that_is_refused_while_it_waits_does_not_begin(
    world: World, busy: tuple[Connection, LooseTransport], early: list[str]
) -> None:
    request, (connection, transport) = stream_request(await world.user("ann")), busy
    spend_iteration(connection)
    connection.data_received(request)
    connection.end(Event.REFUSAL, NO_ROOM_FOR_REQUEST.encode())
    await eventually(lambda: len(start_queue_of(connection)) == 0)
    assert (early, transport.written) == ([], NO_ROOM_FOR_REQUEST.encode())
    connection.connection_lost(None)


async def test_a_request_that_waits_to_begin_is_answered_when_the_server_stops(
    world: World, app: web.Application, busy: tuple[Connection, LooseTransport]
) -> None:
    request, (connection, transport) = stream_request(await world.user("ann")), busy
    spend_iteration(connection)
    connection.data_received(request)
    app[app_keys.HUB].stop(app[app_keys.SHUTDOWN].next_disconnect_reason)
    assert connection.is_busy  # so the server lets it go on
    assert not transport.closed
    await eventually(lambda: transport.closed)
    assert transport.written.startswith(b"HTTP/1.1 503 ")
    connection.connection_lost(None)


async def test_another_request_does_not_wait_behind_streams(
    world: World, busy: tuple[Connection, LooseTransport], early: list[str]
) -> None:
    request, (connection, own_transport) = stream_request(await world.user("ann"), ""), busy
    other, transport = loose_connection(door_of(connection)), LooseTransport()
    other.connection_made(transport)
    spend_iteration(connection)
    connection.data_received(request)
    other.data_received(HEALTH)
    assert len(start_queue_of(connection)) == 1  # the stream; the other request has a task already
    await eventually(lambda: transport.written.startswith(b"HTTP/1.1 200 "))
    await eventually(lambda: own_transport.written.startswith(b"HTTP/1.1 400 "))
    assert early == ["GET /v1/stream"]
    other.connection_lost(None)
    connection.connection_lost(None)


async def test_a_stream_that_waits_without_a_slot_is_aborted_and_logged(
    world: World, address: Address, app: web.Application, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Without a task, nobody would ever go on with it."""
    request = stream_request(await world.user("ann"))

    async def wait_first(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(middleware, "authenticate", wait_first)
    with caplog.at_level(logging.ERROR, "stream_server.web.http.front_door"):
        async with connected(address, app) as (reader, writer):
            writer.write(request)
            async with asyncio.timeout(PATIENCE):
                with suppress(ConnectionError):
                    assert await reader.read() == b""
    assert [record.getMessage() for record in caplog.records] == [
        "a stream waited for something without a slot: see `Opening.hold_slot`"
    ]
