"""A server's start and stop: when it is ready, and how it ends, whatever its clients and its Redis do."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from stream_server.hub.disconnect import MIN_RETRY_SECONDS
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import number
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.many_streams import ManyStreams, RawStream
from tests.end_to_end.server import Server
from tests.processes import alive
from tests.redis_process import RedisProcess, free_port, private_redis
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

SPREAD_SECONDS = 8.0

SHUTDOWN_SECONDS = 4.0

FLAGS = (
    "--heartbeat-seconds", "0.5", "--limits", "off", "--retry-spread-seconds", str(SPREAD_SECONDS),
    "--shutdown-seconds", str(SHUTDOWN_SECONDS), "--write-timeout-seconds", "3600",
)  # fmt: skip
"""A stop that waited for clients, against its deadlines of five seconds together, would outlast every test."""

LONG = "many words " * 25
"""Almost the maximum length of a message."""

NEVER_READING = 100
HALF_SENT = 20


@pytest.fixture
def redis() -> Iterator[RedisProcess]:
    with private_redis() as process:
        yield process


def told_to_go(server: Server) -> None:
    """Send SIGTERM."""
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)


async def gone(server: Server) -> None:
    """Check that the server ends with code 0 and without a traceback."""
    assert server.process is not None
    code = await asyncio.to_thread(server.process.wait, PATIENCE)
    assert code == 0, server.log[-3000:]
    assert "Traceback" not in server.log, server.log[-5000:]


def assert_goodbyes(streams: Sequence[RawStream]) -> list[float]:
    """Check that each body is complete and ends with a goodbye. Return the times after which to reconnect."""
    times = []
    for one in streams:
        assert one.whole, bytes(one.received[-300:])
        goodbye = one.messages[-1]
        assert (goodbye["kind"], goodbye["code"]) == ("goodbye", "shutdown")
        assert goodbye["cursor"] == max((m["cursor"] for m in one.messages), key=number), "the cursor goes back"
        times.append(goodbye["retry_after"])
    return times


def assert_spread(times: Sequence[float]) -> None:
    """Check that the reconnect times are spread evenly: each tenth of the span has its share, plus or minus a half."""
    assert MIN_RETRY_SECONDS <= min(times) <= max(times) <= SPREAD_SECONDS
    tenths = [int(10 * t / (SPREAD_SECONDS + 0.01)) for t in times]
    assert all(0.5 < tenths.count(n) / (len(times) / 10) < 1.5 for n in range(10)), [tenths.count(n) for n in range(10)]


@asynccontextmanager
async def never_reading(server: Server, api: Api, since: str) -> AsyncIterator[None]:
    """Connect clients that request everything and never read, and some that never finish their request."""
    async with AsyncExitStack() as stack:
        for _ in range(NEVER_READING):
            one = await stack.enter_async_context(await RawClient.connect(server.address, receive_bytes=4096))
            await one.ask(f"/v1/stream?firehose=true&since={since}", mint(api.admin))
        for _ in range(HALF_SENT):
            one = await stack.enter_async_context(await RawClient.connect(server.address))
            await one.half_ask("/v1/stream?track=x")
            one = await stack.enter_async_context(await RawClient.connect(server.address))
            await one.send(b"POST /v1/statuses HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        yield


async def much_to_read(api: Api) -> tuple[str, str]:
    """Post more than the kernel buffers for a client. Return the cursor before these posts, and the author."""
    start, uid = await api.head(), await api.user()
    for turn in range(0, 400, 20):
        await asyncio.gather(*(api.post(uid, f"{turn + n} {LONG}"[:280]) for n in range(20)))
    return start, uid


@pytest.mark.parametrize(
    ("workers", "count"), [(2, 200), *(pytest.param(workers, 2000, marks=pytest.mark.nightly) for workers in (1, 2))]
)
async def test_sigterm_ends_all_streams_within_five_seconds(own_folder: Path, workers: int, count: int) -> None:
    """Each stream gets its goodbye, although 100 clients never read and some requests are never complete.

    The reconnect times are spread evenly. Server-sent events also carry them as `retry:`. Further signals, also while
    goodbyes wait for clients that do not read, change nothing.
    """
    with Server(own_folder, *FLAGS, "--workers", str(workers)) as server:
        async with Api(server) as api:
            start, uid = await much_to_read(api)
            async with (
                never_reading(server, api, start),
                ManyStreams(server.address, mint(api.admin), count, "firehose=true") as everybody,
            ):
                last = f'"id":"{(await api.post(uid, "the last one"))["id"]}"'.encode()
                await eventually(lambda: all(last in one.received for one in everybody.all), what="the last post")
                told_to_go(server)
                told_to_go(server)
                await everybody.all[0].ended.wait()
                told_to_go(server)
                await everybody.ended()
                await gone(server)
                times = assert_goodbyes(everybody.all)
        assert all(one.messages[-2]["kind"] in {"post", "heartbeat"} for one in everybody.all)
        assert_spread(times)
        assert [one.retry_ms for one in everybody.sse] == [round(1000 * t) for t in times[: count // 2]]


@pytest.mark.parametrize(
    # On a busy machine, Redis may need more than a second to answer 100 streams that open at once.
    ("how", "patience"),
    [("paused", 2), ("killed", 2), pytest.param("paused", 30, marks=pytest.mark.nightly)],
)
async def test_sigterm_while_redis_is_away(own_folder: Path, redis: RedisProcess, how: str, patience: int) -> None:
    """The stop does not wait for Redis. The server answers live streams, streams that read the log, polls and writes.

    Only a write that may wait for Redis longer than the stop lasts is cut off, so its outcome is unknown.
    """
    async with Proxy(redis.socket) as proxy:
        flags = ("--ring-bytes", "0", "--redis", proxy.url, "--redis-timeout-seconds", str(patience))
        async with Server(own_folder, *FLAGS, *flags) as server, Api(server) as api:
            cursors = [await api.head()]
            uid = await api.user()
            cursors += [f"{(await said(api, uid, turn))}" for turn in range(30)]
            async with AsyncExitStack() as stack:
                token = mint(api.admin)
                live = await stack.enter_async_context(ManyStreams(server.address, token, 200, "firehose=true"))
                polls = [asyncio.create_task(api.poll({"track": "none"}, wait=60)) for _ in range(20)]
                await api.until_metric("streams", lambda count: count >= 220)
                proxy.delay(0.15)  # reads of the log take so long that Redis goes away during them
                catching_up = [
                    await stack.enter_async_context(ManyStreams(server.address, token, 2, f"track=many&since={cursor}"))
                    for cursor in cursors[:20]
                ]
                writing = [await stack.enter_async_context(await RawClient.connect(server.address)) for _ in range(10)]
                (redis.pause if how == "paused" else redis.kill)()
                for client in writing:
                    await client.send(attempt(token))
                told_to_go(server)
                await gone(server)
                for one in (live, *catching_up):
                    await one.ended()
                    assert_goodbyes(one.all)
                ends = [number(one.messages[-1]["cursor"]) for some in catching_up for one in some.all]
                assert min(ends) < number(cursors[-1]), "no client was catching up any more"
                assert [p["events"][-1]["code"] for p in await asyncio.gather(*polls)] == ["shutdown"] * len(polls)
                statuses = {(await client.read_to_end())[9:12] for client in writing}
                assert statuses == ({b""} if patience > SHUTDOWN_SECONDS else {b"503"})


def attempt(token: str) -> bytes:
    body = b'{"message":"an attempt"}'
    head = f"POST /v1/statuses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Content-Type: application/json\r\n\r\n" + body


async def said(api: Api, uid: str, turn: int) -> str:
    await api.post(uid, f"{turn} {LONG}"[:280])
    return await api.head()


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.nightly), 2])
async def test_a_shutdown_loses_no_acknowledged_write(own_folder: Path, workers: int) -> None:
    """Clients post over kept and new connections until the server does not answer any more.

    Each acknowledged post arrives once: before the goodbyes, or after their cursors when the server is back.
    """
    server = Server(own_folder, *FLAGS, "--workers", str(workers))
    acknowledged: set[str] = set()
    async with server, Api(server) as api:
        uid = await api.user()
        watching = [await api.stream({"follow": uid}, framing=("sse", "ndjson")[n % 2]) for n in range(10)]
        writing = [asyncio.create_task(write(api, uid, acknowledged, fresh=n % 2 == 0)) for n in range(6)]
        await asyncio.gather(*(one.until(lambda c: len(c.events) > 50) for one in watching))
        told_to_go(server)
        await gone(server)
        await asyncio.gather(*writing)
        seen = []
        for one in watching:
            await one.until_end()
            assert one.messages[-1]["kind"] == "goodbye"
            seen.append((one.received, one.cursor))
            await one.close()
    async with server, Api(server) as api:
        head = await api.head()
        logs = []
        for told, cursor in seen:
            async with await api.stream({"follow": uid}, uid=uid, last_event_id=cursor) as back:
                await back.reached(head)
                assert not back.of("gap")
                logs.append(told + back.received)
    assert all(log == logs[0] for log in logs)
    ids = [name for _, name in logs[0]]
    assert len(set(ids)) == len(ids)
    assert acknowledged <= set(ids)


async def write(api: Api, uid: str, acknowledged: set[str], *, fresh: bool) -> None:
    """Post until the server no longer answers. With ``fresh`` each post has a new connection."""
    token, headers = mint(uid), {"Connection": "close"} if fresh else {}
    while True:
        try:
            answer = await api.call("POST", "/v1/statuses", token=token, json={"message": "more"}, headers=headers)
        except aiohttp.ClientError:
            return
        if answer.status == 201:
            acknowledged.add(answer.json["id"])
        else:
            assert answer.error[:2] in {(503, "unavailable"), (503, "outcome_unknown")}


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGTERM, 2),
        (signal.SIGINT, 1),
        pytest.param(signal.SIGTERM, 1, marks=pytest.mark.nightly),
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, 1, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, 2, marks=pytest.mark.nightly),
    ],
    ids=str,
)
async def test_repeated_signals_during_a_shutdown_change_nothing(
    own_folder: Path, redis: RedisProcess, workers: int, number: signal.Signals
) -> None:
    """Signals arrive until the process has ended, also while the interpreter shuts down. The exit code is 0.

    SIGINT begins after the run file is removed, because an earlier second SIGINT would kill the workers.
    """
    with Server(own_folder, *FLAGS, "--redis", redis.url, "--workers", str(workers)) as server:
        process, note = server.process, server.data / "server.json"
        assert process is not None
        assert note.exists()
        told_to_go(server)
        if number == signal.SIGINT:
            await eventually(lambda: not note.exists(), what="the removal of the run file")
        sent = 0
        while process.poll() is None:
            process.send_signal(number)
            sent += 1
            await asyncio.sleep(0.001)  # the pace of the signals; the loop waits for the process
        await gone(server)
        assert sent > 1


async def test_sigterm_with_a_frozen_embedded_redis(own_folder: Path) -> None:
    """SIGSTOP freezes the embedded Redis. The server still ends in time and leaves no process behind."""
    async with (
        Server(own_folder, *FLAGS, "--redis-timeout-seconds", "1") as server,
        Api(server) as api,
        ManyStreams(server.address, mint(api.admin), 20, "firehose=true") as everybody,
    ):
        pid = redis_of(server)
        os.kill(pid, signal.SIGSTOP)
        told_to_go(server)
        await gone(server)
        await everybody.ended()
        assert_goodbyes(everybody.all)
        assert not alive(pid)


def redis_of(server: Server) -> int:
    """Return the process id of the embedded Redis, 0 if it does not exist yet."""
    lock = server.data / "redis.lock"
    return int((lock.read_text() if lock.exists() else "").partition(" ")[0] or 0)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.nightly), 2])
async def test_sigterm_during_the_start(own_folder: Path, workers: int) -> None:
    """Redis has just started and the server does not serve yet. The server ends with code 0, and Redis ends too."""
    server = Server(own_folder, *FLAGS, "--workers", str(workers))
    async with launched(server):
        pid = await eventually(lambda: redis_of(server))
        told_to_go(server)
        await gone(server)
        assert not alive(pid)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.nightly), 2])
async def test_sigterm_while_the_start_waits_for_redis(own_folder: Path, redis: RedisProcess, workers: int) -> None:
    """Redis answers requests but delivers no published entries, so the server would wait forever.

    SIGTERM still ends it.
    """
    async with Proxy(redis.socket) as proxy:
        server = Server(own_folder, *FLAGS, *behind(proxy), "--workers", str(workers))
        async with deaf(proxy), launched(server):
            await eventually(lambda: proxy.swallowed_bytes, what="a subscription that is swallowed")
            told_to_go(server)
            await gone(server)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
async def test_a_server_is_not_ready_before_its_feed(own_folder: Path, redis: RedisProcess, workers: int) -> None:
    """A new server that does not receive events yet gives no answer or does not listen, so no probe gets a false yes.

    A single process listens from the beginning, so a client that returns right after a restart waits instead of being
    refused. The server answers on the same connection once it can.
    """
    port = free_port()
    async with Proxy(redis.socket) as proxy:
        server = Server(own_folder, *FLAGS, *behind(proxy), "--workers", str(workers), "--port", str(port))
        async with launched(server) as starting:
            async with deaf(proxy):
                await eventually(lambda: proxy.swallowed_bytes, what="a subscription that is swallowed")
                asked = [] if workers > 1 else [await RawClient.connect(f"http://127.0.0.1:{port}")]
                for client in asked:
                    await client.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                if workers > 1:
                    with pytest.raises(ConnectionRefusedError):
                        await asyncio.open_connection("127.0.0.1", port)
            swallowed = proxy.swallowed_bytes
            proxy.delay(0)
            proxy.swallow(False)
            for client in asked:
                answer = await client.read_to_end(40)
                assert answer.startswith(b"HTTP/1.1 200 ")
                assert b'"ready":true' in answer
                client.close()
            assert (await asyncio.wait_for(starting, PATIENCE)).address.endswith(f":{port}")
            assert swallowed
            told_to_go(server)
            await gone(server)


def behind(proxy: Proxy) -> Sequence[str]:
    """Return the flags of a server whose Redis is behind the proxy."""
    return "--redis", proxy.url, "--redis-timeout-seconds", "1"


@asynccontextmanager
async def launched(server: Server) -> AsyncIterator["asyncio.Task[Server]"]:
    """Start the server in the background. The task ends when it is ready or has ended."""
    starting = asyncio.create_task(asyncio.to_thread(server.start))
    try:
        await eventually(lambda: server.process is not None)
        yield starting
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
        await asyncio.wait({starting})
        starting.exception()


@asynccontextmanager
async def deaf(proxy: Proxy) -> AsyncIterator[None]:
    """Swallow every subscription at the proxy. A delay gives the test time to see each SUBSCRIBE before its answer."""

    async def keep() -> None:
        while True:
            proxy.swallow(of=b"SUBSCRIBE")
            await asyncio.sleep(0.01)  # the fault lasts as long as this context; the loop waits for nothing

    proxy.delay(0.2)
    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})
