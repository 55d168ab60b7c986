"""Calls that share a connection: written together, answered in order, given up in time, and never made later."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop

from stream_server.errors import OutcomeUnknown, Unavailable
from stream_server.store.redis import pipelined_connection
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import MAX_CONNECTIONS, Lane
from stream_server.store.redis.pipelined_connection import PipelinedConnection
from tests.redis_process import RedisProcess, newest
from tests.stream_server.store.redis.jumping_clock import JumpingClock
from tests.stream_server.store.redis.puppet_redis import PuppetRedis
from tests.stream_server.store.redis.scripted_redis import SILENCE, ScriptedRedis
from tests.tls import Authority, TlsProxy
from tests.waiting import PATIENCE, eventually

SHORT = 0.1
"""The timeout of a client whose server is silent."""

CROWD = 100


@pytest.fixture
async def puppet() -> AsyncIterator[PuppetRedis]:
    async with PuppetRedis() as made:
        yield made


@pytest.fixture
async def client(puppet: PuppetRedis) -> AsyncIterator[RedisClient]:
    made = RedisClient(puppet.url, PATIENCE)
    yield made
    await made.close()


async def _echo(client: RedisClient, text: str, seconds: float = PATIENCE) -> bytes:
    (reply,) = await client.execute(("ECHO", text), max_seconds=seconds)
    return bytes(reply)


async def _answers(client: RedisClient) -> bool:
    try:
        return bool(await _echo(client, "connected"))
    except Unavailable:  # on a busy machine
        return False


def _connection(client: RedisClient, lane: Lane = Lane.READ) -> PipelinedConnection:
    (only,) = client._lanes[lane]._connections
    return only


class Writes:
    """The transport of a connection, which counts its writes."""

    def __init__(self, connection: PipelinedConnection) -> None:
        self._write = connection._transport.write
        self.count = 0
        connection._transport = self  # type: ignore[assignment]  # what the test looks at

    def write(self, data: bytes) -> None:
        self.count += 1
        self._write(data)

    def is_closing(self) -> bool:
        return False


async def test_the_commands_of_one_turn_leave_in_one_write(puppet: PuppetRedis) -> None:
    client = RedisClient(puppet.url, PATIENCE)
    await _echo(client, "connected")
    connection = _connection(client)
    transport = connection._transport
    writes = Writes(connection)
    replies = await asyncio.gather(*(_echo(client, str(number)) for number in range(CROWD)))
    assert replies == [b"%d" % number for number in range(CROWD)]
    assert (writes.count, puppet.connections) == (1, 1)
    connection._transport = transport
    await client.close()


async def test_answers_in_pieces_come_to_their_callers_in_order(client: RedisClient, puppet: PuppetRedis) -> None:
    puppet.splits = True
    pairs = [client.execute(("ECHO", f"{number}"), ("ECHO", f"{number}b")) for number in range(9)]
    assert await asyncio.gather(*pairs) == [[b"%d" % number, b"%db" % number] for number in range(9)]
    assert puppet.connections == 1


async def test_a_late_answer_is_dropped(client: RedisClient, puppet: PuppetRedis) -> None:
    await _echo(client, "connected")
    puppet.speaks.clear()
    with pytest.raises(Unavailable):
        await _echo(client, "late", SHORT)
    later = asyncio.create_task(_echo(client, "later"))
    await eventually(lambda: len(_connection(client)._unanswered) == 2, what="both sent")
    puppet.speaks.set()
    assert await later == b"later"
    assert puppet.connections == 1


async def test_a_silent_connection_is_replaced_and_closed(puppet: PuppetRedis) -> None:
    client = RedisClient(puppet.url, SHORT)
    await eventually(partial(_answers, client), what="connected")
    before = puppet.connections
    puppet.speaks.clear()
    with pytest.raises(Unavailable):
        await _echo(client, "lost")
    silent = _connection(client)
    refused = asyncio.create_task(_echo(client, "on another connection"))
    await eventually(lambda: puppet.connections > before, what="another connection")
    with pytest.raises(Unavailable):
        await refused
    assert silent not in client._lanes[Lane.READ]._connections
    await eventually(silent._closed.done, what="the silent one closed")
    await client.close()


async def test_a_server_that_answers_no_ping_gets_no_command(puppet: PuppetRedis) -> None:
    client = RedisClient(puppet.url, SHORT)
    puppet.reads.clear()
    for _ in range(3):
        with pytest.raises(Unavailable):
            await client.execute_write(("SET", "k", "v"))
    puppet.reads.set()
    client.timeout_seconds = PATIENCE
    await _echo(client, "now")
    assert puppet.seen == [[b"ECHO", b"now"]]
    await client.close()


async def test_a_cancelled_call_is_not_sent_or_its_answer_is_dropped(client: RedisClient, puppet: PuppetRedis) -> None:
    await _echo(client, "connected")
    unsent = asyncio.create_task(_echo(client, "unsent"))
    await asyncio.sleep(0)  # the call waits for the end of the turn
    unsent.cancel()
    puppet.speaks.clear()
    sent = asyncio.create_task(_echo(client, "sent"))
    await eventually(lambda: [b"ECHO", b"sent"] in puppet.seen, what="the call sent")
    sent.cancel()
    await asyncio.gather(unsent, sent, return_exceptions=True)
    puppet.speaks.set()
    assert await _echo(client, "next") == b"next"
    assert [command[1] for command in puppet.seen] == [b"connected", b"sent", b"next"]
    assert puppet.connections == 1


async def test_a_write_that_the_socket_did_not_take_in_time_is_never_made(puppet: PuppetRedis) -> None:
    client = RedisClient(puppet.url, PATIENCE)
    await client.execute_write(("SET", "connected", "x"))
    puppet.reads.clear()
    filling = [asyncio.create_task(client.execute_write(("SET", "k", "x" * 60_000))) for _ in range(20)]
    connection = _connection(client, Lane.WRITE)
    await eventually(lambda: connection._is_blocked, what="a full socket")
    client.timeout_seconds = SHORT
    with pytest.raises(Unavailable):
        await client.execute_write(("SET", "refused", "x"))
    client.timeout_seconds = PATIENCE
    puppet.reads.set()
    await asyncio.gather(*filling)
    await client.execute_write(("SET", "after", "x"))
    assert puppet.seen[-1][1] == b"after"
    assert not [command for command in puppet.seen if command[1] == b"refused"]
    await client.close()


async def test_commands_beyond_the_bound_of_the_buffer_are_refused_at_once(
    client: RedisClient, puppet: PuppetRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelined_connection, "MAX_WAITING_BYTES", 1000)
    fitting = [asyncio.create_task(_echo(client, "fits")) for _ in range(9)]
    await asyncio.gather(*fitting)
    with pytest.raises(Unavailable):
        await _echo(client, "x" * 1000)
    assert len(puppet.seen) == 9


async def test_a_crowd_of_reads_delays_no_write() -> None:
    async with ScriptedRedis(GET=[SILENCE], EVALSHA=[b"+page\r\n"], SET=[b"+OK\r\n"]) as redis:
        client = RedisClient(redis.url, PATIENCE)
        reads = [asyncio.create_task(client.execute(("GET", "k"))) for _ in range(10 * CROWD)]
        await eventually(lambda: redis.count("GET"), what="the reads sent")
        assert await client.execute_write(("SET", "k", "v")) == [b"OK"]
        assert await client.execute(("EVALSHA", "sha", 1, "{core}:meta")) == [b"page"]
        assert not any(read.done() for read in reads)
        for read in reads:
            read.cancel()
        await client.close()


async def test_concurrent_waits_use_several_connections(client: RedisClient, puppet: PuppetRedis) -> None:
    puppet.speaks.clear()
    count = MAX_CONNECTIONS[Lane.BLOCKING] + 4
    waits = [asyncio.create_task(client.execute(("ECHO", str(number)), ("WAIT", 1, 1))) for number in range(count)]
    await eventually(lambda: puppet.connections == MAX_CONNECTIONS[Lane.BLOCKING], what="as many as there may be")
    puppet.speaks.set()
    assert [reply for reply, _ in await asyncio.gather(*waits)] == [b"%d" % number for number in range(count)]
    assert puppet.connections == MAX_CONNECTIONS[Lane.BLOCKING]


async def test_a_lost_connection_fails_what_was_sent_and_moves_what_was_not(
    client: RedisClient, puppet: PuppetRedis
) -> None:
    await client.execute_write(("SET", "k", "v"))
    puppet.speaks.clear()
    sent = asyncio.create_task(client.execute_write(("SET", "sent", "v")))
    await eventually(lambda: puppet.seen[-1][1] == b"sent", what="the write sent")
    unsent = asyncio.create_task(client.execute_write(("SET", "unsent", "v")))
    await asyncio.sleep(0)  # the call waits for the end of the turn
    _connection(client, Lane.WRITE)._transport.abort()
    puppet.speaks.set()
    with pytest.raises(OutcomeUnknown):
        await sent
    assert await unsent == [b"OK"]
    assert (puppet.seen[-1][1], puppet.connections) == (b"unsent", 2)


async def test_a_refusal_of_a_demoted_primary_loses_no_other_answer() -> None:
    async with ScriptedRedis(SET=[b"-READONLY no\r\n", b"+OK\r\n"], DEL=[b":1\r\n"]) as redis:
        client = RedisClient(redis.url, PATIENCE)
        refused = asyncio.create_task(client.execute_write(("SET", "k", "v")))
        answered = asyncio.create_task(client.execute_write(("DEL", "k")))
        assert await answered == [1]
        with pytest.raises(Unavailable):
            await refused
        assert redis.connections == 1
        assert await client.execute_write(("SET", "k", "v")) == [b"OK"]
        assert redis.connections == 2, "the next call looks for the new primary"
        await client.close()


async def test_answers_that_came_while_the_process_stood_still_count(
    monkeypatch: pytest.MonkeyPatch, puppet: PuppetRedis
) -> None:
    clock = JumpingClock(monkeypatch)
    client = RedisClient(puppet.url, PATIENCE)
    await _echo(client, "connected")
    puppet.speaks.clear()
    asked = asyncio.create_task(_echo(client, "answered"))
    await eventually(lambda: len(puppet.seen) == 2, what="the call sent")
    clock._now += 2 * PATIENCE
    puppet.speaks.set()
    assert await asked == b"answered"
    await client.close()


async def test_a_process_that_is_always_late_gives_up_its_calls(
    monkeypatch: pytest.MonkeyPatch, puppet: PuppetRedis
) -> None:
    JumpingClock(monkeypatch)
    monkeypatch.setattr(pipelined_connection, "LATE_TIMER_SECONDS", -1.0)
    client = RedisClient(puppet.url, PATIENCE)
    puppet.speaks.clear()
    with pytest.raises(Unavailable):
        await _echo(client, "unanswered")
    await client.close()


async def _use(url: str) -> None:
    """Send small, many and large commands through a client."""
    client, large = RedisClient(url, PATIENCE), "x" * 3_000_000
    replies = await asyncio.gather(*(client.execute(("ECHO", str(number))) for number in range(1000)))
    assert replies == [[b"%d" % number] for number in range(1000)]
    (set_large, (got, *_)) = await asyncio.gather(
        client.execute_write(("SET", "large", large)), client.execute(("ECHO", large), ("ECHO", "small"))
    )
    assert (set_large, got) == ([b"OK"], large.encode())
    assert await client.execute(("GET", "large")) == [large.encode()]
    await client.close()


async def _use_all(redis: RedisProcess, folder: Path) -> None:
    await _use(redis.url)
    await _use(f"unix://{redis.socket}")
    async with TlsProxy(redis.socket, Authority(folder)) as proxy:
        await _use(f"rediss://{proxy.netloc}/1?ssl_ca_certs={proxy.ca}")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_each_kind_of_connection_is_taken_over(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    with RedisProcess(newest(), port=0) as redis:
        run(_use_all(redis, tmp_path))
