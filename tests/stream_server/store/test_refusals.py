"""A real Redis in trouble: what is said is true, and nothing is written that was said not to be."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import redis

from stream_server.errors import OutcomeUnknown, Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People
from tests.stream_server.store.replicas import entries, run
from tests.waiting import PATIENCE, eventually


class Trouble(NamedTuple):
    """A Redis of one's own, a store of it, and somebody who writes."""

    server: RedisProcess
    store: Store
    author: str

    async def post(self, request: IdempotencyKey | None = None) -> bytes:
        """One status."""
        return await self.store.statuses.create(
            self.author, StatusDraft(message="x"), request or IdempotencyKey.generate()
        )


@pytest.fixture
async def trouble(redis_server: RedisProcess) -> AsyncIterator[Trouble]:
    """All is well yet."""
    with RedisProcess(Path(redis_server._command[0])) as server:
        store = Store(server.url, timeout_seconds=PATIENCE)
        await store.open()
        yield Trouble(server, store, await People(store).user("Ann"))
        await store.close()


async def test_a_busy_redis_and_a_script_that_was_killed(trouble: Trouble) -> None:
    """Somebody's script runs on and on: nobody's write is run, and neither was what was killed."""
    run(trouble.server, "CONFIG", "SET", "lua-time-limit", "20")
    link = RedisClient(trouble.server.url, PATIENCE)
    endless = asyncio.create_task(link.execute(("EVAL", "while true do end", 0)))
    await eventually(lambda: _busy(trouble.server), what="Redis busy")
    with pytest.raises(Unavailable):
        await trouble.post()
    run(trouble.server, "SCRIPT", "KILL")
    with pytest.raises(Unavailable):
        await endless
    assert entries(trouble.server) == 0
    await trouble.post()
    await link.close()


async def test_more_connections_than_redis_takes(trouble: Trouble) -> None:
    """It answers by itself and hangs up: nothing of ours was read."""
    run(trouble.server, "CONFIG", "SET", "maxclients", "2")
    with trouble.server.client() as looking:
        looking.ping()  # one connection is the store's
        other = Store(trouble.server.url, timeout_seconds=PATIENCE)
        with pytest.raises(Unavailable):
            await other.statuses.create(trouble.author, StatusDraft(message="x"), IdempotencyKey.generate())
        await other.close()
        refused = looking.info("stats")["rejected_connections"]
        assert refused >= 1
    assert entries(trouble.server) == 0


async def test_fewer_replicas_than_redis_wants(trouble: Trouble) -> None:
    """`min-replicas-to-write` is Redis' own; each version has words of its own for it, inside of scripts."""
    run(trouble.server, "CONFIG", "SET", "min-replicas-to-write", "1")
    with pytest.raises(Unavailable):
        await trouble.post()
    assert entries(trouble.server) == 0


async def test_a_user_of_redis_who_may_not_publish(trouble: Trouble) -> None:
    """What is on the log is answered, and made once under its key: whoever does not hear of it reads it there."""
    request = IdempotencyKey.from_client(trouble.author, "key", b"payload")
    run(trouble.server, "ACL", "SETUSER", "default", "resetchannels")
    with trouble.server.client() as client, pytest.raises(redis.ResponseError):
        client.publish("events:post", "x")
    made = await trouble.post(request)
    assert await trouble.post(request) == made
    assert entries(trouble.server) == 1


async def test_a_user_of_redis_who_may_not_do_all_of_a_write(trouble: Trouble) -> None:
    """A part of it is there: neither a failure of ours, nor a promise that there is nothing."""
    run(trouble.server, "ACL", "SETUSER", "default", "-zadd")
    with pytest.raises(OutcomeUnknown):
        await trouble.post()
    assert entries(trouble.server) == 1


async def test_a_connection_killed_while_redis_pauses(trouble: Trouble) -> None:
    """Neither attempt was run, which nobody can know; repeated under its key, it is made once."""
    request = IdempotencyKey.from_client(trouble.author, "key", b"payload")
    run(trouble.server, "CLIENT", "PAUSE", "600000", "WRITE")
    writing = asyncio.create_task(trouble.post(request))
    for _ in range(2):
        await eventually(lambda: _killed(trouble.server), what="a write that waits, killed")
    with pytest.raises(OutcomeUnknown):
        await writing
    assert entries(trouble.server) == 0
    run(trouble.server, "CLIENT", "UNPAUSE")
    made = await trouble.post(request)
    assert await trouble.post(request) == made
    assert entries(trouble.server) == 1


async def test_redis_dies_while_a_write_waits(trouble: Trouble) -> None:
    """The first attempt was sent; that nobody is there for the second says nothing of it."""
    trouble.server.pause()
    writing = asyncio.create_task(trouble.post())
    await eventually(lambda: trouble.store._redis.pool._in_use_connections, what="a write on its way")
    trouble.server.kill()
    with pytest.raises(OutcomeUnknown):
        await writing
    with pytest.raises(Unavailable):
        await trouble.post()


def _busy(server: RedisProcess) -> bool:
    try:
        run(server, "PING")
    except redis.ResponseError as error:
        return "BUSY" in str(error)
    return False


def _killed(server: RedisProcess) -> bool:
    """Whether a connection was found that asks for a script, and killed."""
    with server.client() as client:
        waiting = [each["id"] for each in client.client_list() if each["cmd"] == "evalsha" and "b" in each["flags"]]
        return any(client.client_kill_filter(_id=each) for each in waiting)
