"""Half a request head takes its bytes alone, all of a process take a limited number, and no cut changes an answer."""

import asyncio
import gc
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from stream_server.runtime.fair_queue import FairQueue
from stream_server.web.http.connection import Connection
from stream_server.web.http.front_door import FrontDoor
from stream_server.web.http.request_cycle import MAX_COUNTED_BODY_BYTES, MAX_HEAD_BYTES
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits import byte_budget
from stream_server.web.limits.byte_budget import ByteBudget, ByteLimits
from stream_server.web.route import Request
from tests.stream_server import tokens
from tests.stream_server.web.world import World, replace_handler
from tests.waiting import PATIENCE, eventually

GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
PUT = b"PUT /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 37\r\n\r\nGET /v1/nothing HTTP/1.1\r\nHost: b\r\n\r\n"
DELETE = (
    b"DELETE /v1/nothing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
)
CLOSE = b"HEAD /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
STREAM = b"GET /v1/stream?track=a HTTP/1.1\r\nHost: a\r\n\r\n"
STATUSES = {GET: b"200", PUT: b"405", b"\r\n" + GET: b"200", STREAM: b"401"}

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def runner(app: web.Application) -> AsyncIterator[FrontDoor]:
    made = FrontDoor(app, shutdown_seconds=0.1)
    await made.open([socket.create_server(("127.0.0.1", 0))])
    yield made
    await made.close()


@pytest.fixture
def held(runner: FrontDoor) -> ByteBudget[Connection]:
    """The bytes that are held, of which each counts."""
    runner.held_bytes.limits = runner.held_bytes.limits._replace(free=0)
    return runner.held_bytes


@pytest.fixture
async def connect(runner: FrontDoor) -> AsyncIterator[Connect]:
    """Return what opens a connection to the server."""
    writers = []

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writers.append(writer)
        return reader, writer

    yield connect
    for writer in writers:
        writer.close()


@asynccontextmanager
async def waiting_health_check(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Event]:
    """Let `/healthz` wait for the event."""
    go_on, began = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> web.StreamResponse:
        began.set()
        await go_on.wait()
        return web.Response(text="at last")

    replace_handler(monkeypatch, "/healthz", wait)
    yield go_on
    assert began.is_set()


def statuses(answers: bytes) -> list[bytes]:
    return [part.split(b" ", 2)[1] for part in answers.split(b"HTTP/1.1")[1:] if part.startswith(b" ")]


@pytest.mark.parametrize("seed", range(12))
async def test_no_cut_between_bytes_changes_an_answer(
    connect: Connect, held: ByteBudget[Connection], seed: int
) -> None:
    """Requests that come together, with bodies that look like requests, are answered one by one."""
    chance = random.Random(seed)
    requests = chance.choices(list(STATUSES), k=5)
    sent = b"".join(requests) + CLOSE
    reader, writer = await connect()
    cuts = sorted(chance.choices(range(len(sent)), k=chance.choice([0, 3, 40])))
    for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        writer.write(sent[start:end])
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        answers = await reader.read()
    assert statuses(answers) == [*(STATUSES[request] for request in requests), b"200"]
    await eventually(lambda: not held.total)


@pytest.mark.parametrize("cut", range(0, len(DELETE), 3))
async def test_a_connection_goes_on_behind_chunks(connect: Connect, cut: int) -> None:
    reader, writer = await connect()
    writer.write(DELETE[:cut])
    await asyncio.sleep(0)
    writer.write(DELETE[cut:])
    async with asyncio.timeout(PATIENCE):
        assert statuses(await reader.readuntil(b"}}")) == [b"404"]
        writer.write(CLOSE)
        assert statuses(await reader.read()) == [b"200"]


async def test_half_a_head_behind_chunks_waits_for_its_rest(connect: Connect, held: ByteBudget[Connection]) -> None:
    reader, writer = await connect()
    writer.write(DELETE + GET[:20])
    async with asyncio.timeout(PATIENCE):
        assert statuses(await reader.readuntil(b"}}")) == [b"404"]
        await eventually(lambda: held.total == 20)
        writer.write(GET[20:] + CLOSE)
        assert statuses(await reader.read()) == [b"200", b"200"]
    assert held.total == 0


async def test_the_largest_unfinished_head_goes_first(
    connect: Connect, held: ByteBudget[Connection], app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.limits = ByteLimits(40_000, 40_000, free=0)
    begin = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "
    clients = []
    for size in (20_000, 5_000, 12_000, 10_000):
        reader, writer = await connect()
        writer.write(begin + b"x" * (size - len(begin)))
        clients.append((reader, writer))
        expected = sum([20_000, 5_000, 12_000][: len(clients)]) if len(clients) < 4 else 27_000
        await eventually(lambda expected=expected: held.total == expected)  # type: ignore[misc]  # a lambda with a default
    async with asyncio.timeout(PATIENCE):
        assert statuses(await clients[0][0].read()) == [b"503"]
    assert app[LIMITS].hits.counts()["held_bytes"] == 1
    held.limits = ByteLimits(4 * 40_000, 4 * 40_000, free=0)  # a head that is whole counts four times
    for reader, writer in clients[1:]:
        writer.write(b"\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            assert statuses(await reader.read()) == [b"200"]
    assert held.total == 0


@pytest.mark.parametrize("limit", ["bytes", "seconds"])
async def test_a_stream_that_waits_for_its_turn_is_answered_when_it_cannot_wait_on(
    connect: Connect, held: ByteBudget[Connection], app: web.Application, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """All slots are taken by streams that ask Redis. The next one waits as bytes, until they or the time are over."""
    monkeypatch.setattr(app[LIMITS], "openings", FairQueue(0, "too many", 0.05 if limit == "seconds" else 60.0))
    reader, writer = await connect()
    token = f"Authorization: Bearer {tokens.fresh('1', 'stream')}\r\n\r\n".encode()  # Redis is asked about it
    if limit == "bytes":
        held.limits = ByteLimits(len(STREAM), len(STREAM), free=0)
    writer.write(STREAM.removesuffix(b"\r\n") + token)
    async with asyncio.timeout(PATIENCE):
        assert statuses(await reader.readuntil(b"}}")) == [b"503"]
    assert held.total == 0


async def test_the_head_of_a_client_that_leaves_before_its_turn_is_forgotten(
    connect: Connect, runner: FrontDoor, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings = FairQueue(0, "too many", 60.0)
    monkeypatch.setattr(app[LIMITS], "openings", openings)
    _, writer = await connect()
    token = f"Authorization: Bearer {tokens.fresh('1', 'stream')}\r\n".encode()
    writer.write(STREAM.removesuffix(b"\r\n") + token + b"X: " + b"x" * 15_000 + b"\r\n\r\n")
    await eventually(lambda: len(openings._waiting) == 1)
    writer.transport.abort()
    await eventually(lambda: not runner.connections)
    kept = gc.get_referents(*gc.get_referents(openings._waiting[0][1]))
    assert not [each for each in kept if isinstance(each, bytes | tuple) and b"GET" in each]
    openings.give_back()
    assert not openings._waiting


async def test_a_client_that_sends_on_before_its_answer_is_not_read(
    connect: Connect, held: ByteBudget[Connection], app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits behind a running request counts too, and a client that takes too much of it has no answer to lose."""
    async with waiting_health_check(monkeypatch) as go_on:
        reader, writer = await connect()
        writer.write(GET + b"HEAD /readyz HTTP/1.1\r\nHost: a\r\n\r\n" * 30_000 + CLOSE)
        await eventually(lambda: held.total > MAX_HEAD_BYTES)
        most = held.total
        assert most < MAX_HEAD_BYTES + 2**18, "no more than one read of the socket"
        greedy_reader, greedy = await connect()
        greedy.write(GET + b"X" * 1000)
        await eventually(lambda: held.total > most)
        held.limits = ByteLimits(most, most, free=0)
        greedy.write(b"X" * MAX_HEAD_BYTES)
        monkeypatch.setattr(byte_budget, "SHARE_AFTER_EVICTION", 1)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ConnectionResetError):
                await reader.readexactly(1)
        assert 0 < held.total < most
        go_on.set()
        assert statuses(await greedy_reader.read())[0] == b"200"


async def test_an_ingest_of_any_length_is_not_closed_for_its_bytes(
    connect: Connect, held: ByteBudget[Connection], world: World
) -> None:
    """Its lines are written and forgotten while others come."""
    held.limits = ByteLimits(600_000, 600_000)
    token = tokens.fresh(await world.user("site"), "ingest")
    reader, writer = await connect()
    head = f"POST /v1/ingest HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"{head}Content-Type: application/x-ndjson\r\nContent-Length: 3000000\r\n\r\n".encode())
    writer.write(b"{}\n".ljust(10_000, b"\n") * 300)
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    assert answer.count(b'{"line":') == 300
    assert held.total == 0


async def test_a_body_of_any_size_is_not_held(
    connect: Connect, held: ByteBudget[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, note = [], ByteBudget.note

    def note_and_keep(budget: ByteBudget[Connection], connection: Any, size: int) -> None:
        sizes.append(size)
        note(budget, connection, size)

    monkeypatch.setattr(ByteBudget, "note", note_and_keep)
    reader, writer = await connect()
    writer.write(b"POST /v1/nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\n")
    writer.write(b"\r\n\r\n" * 750_000)
    async with asyncio.timeout(PATIENCE):
        assert statuses(await reader.read()) == [b"404"]
    assert max(sizes) <= 2 * MAX_COUNTED_BODY_BYTES, "a read of the socket, and what the handler may keep"
    assert held.total == 0
