"""A real Redis in trouble: an `unavailable` write is surely not on the log."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import redis

from stream_server.errors import OutcomeUnknown, Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.refusals import describe_for_operator
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.replicas import entries, run
from tests.waiting import PATIENCE, eventually


class Trouble(NamedTuple):
    """A private Redis, a store on it, and an author."""

    server: RedisProcess
    store: Store
    author: str

    async def post(self, request: IdempotencyKey | None = None) -> bytes:
        return await self.store.statuses.create(self.author, StatusDraft(message="x"), request or new_key())


@pytest.fixture
async def trouble(redis_server: RedisProcess) -> AsyncIterator[Trouble]:
    with RedisProcess(Path(redis_server._command[0])) as server:
        store = Store(server.url, timeout_seconds=PATIENCE)
        await store.open()
        yield Trouble(server, store, await People(store).user("Ann"))
        await store.close()


async def test_a_busy_redis_and_a_killed_script_are_unavailable(trouble: Trouble) -> None:
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


async def test_a_refused_connection_is_unavailable(trouble: Trouble) -> None:
    with trouble.server.client() as looking:
        looking.config_set("maxclients", len(looking.client_list()))
        other = Store(trouble.server.url, timeout_seconds=PATIENCE)
        with pytest.raises(Unavailable):
            await other.statuses.create(trouble.author, StatusDraft(message="x"), new_key())
        await other.close()
        refused = looking.info("stats")["rejected_connections"]
        assert refused >= 1
    assert entries(trouble.server) == 0


async def test_the_error_says_why_redis_did_nothing(trouble: Trouble) -> None:
    """It is out of reach only if it is, and no text of Redis or address is in the answer."""
    run(trouble.server, "CONFIG", "SET", "requirepass", "hunter22")
    client = RedisClient(trouble.server.url, PATIENCE)
    with pytest.raises(Unavailable, match=r"^the data store does not let this server in; nothing was written$"):
        await client.execute(("PING",))
    trouble.server.pause()
    client.timeout_seconds = 0.2
    with pytest.raises(Unavailable, match=r"^the data store did not answer in time; nothing was written$"):
        await client.execute(("PING",))
    trouble.server.kill()
    with pytest.raises(Unavailable, match=r"^the data store cannot be reached; nothing was written$"):
        await client.execute(("PING",))
    await client.close()


async def test_an_operator_reads_by_a_word_what_keeps_redis_away(trouble: Trouble) -> None:
    """No cause is a name of asyncio, such as CancelledError, which says nothing of Redis."""

    async def told(url: str, seconds: float = PATIENCE) -> str:
        client = RedisClient(url, seconds)
        try:
            with pytest.raises(Unavailable) as raised:
                await client.execute(("PING",))
        finally:
            await client.close()
        return describe_for_operator(raised.value)

    with trouble.server.client() as client:
        client.config_set("maxclients", 1)

        async def is_told() -> bool:
            """Redis closes the connection behind its words, so a client that still writes may miss them."""
            return "max number of clients" in await told(trouble.server.url)

        await eventually(is_told)
        client.config_set("maxclients", 1000)
    run(trouble.server, "CONFIG", "SET", "requirepass", "hunter22")
    assert re.fullmatch(r"refuses: .* \(no password\)", await told(trouble.server.url))
    assert re.fullmatch(r"refuses: .* \(bad password\)", await told(trouble.server.url.replace("//", "//:hunter23@")))
    assert re.fullmatch(r"cannot be reached: .* \(DNS\)", await told("redis://nobody.invalid:6379"))
    trouble.server.pause()
    assert await told(trouble.server.url, 0.2) == "cannot be reached: no answer in time (frozen)"


async def test_an_operator_reads_that_a_port_may_be_without_tls(redis_server: RedisProcess) -> None:
    with RedisProcess(Path(redis_server._command[0]), port=0) as plain:
        client = RedisClient(plain.url.replace("redis://", "rediss://"), 2)
        with pytest.raises(Unavailable) as raised:
            await client.execute(("PING",))
        await client.close()
    told = describe_for_operator(raised.value)
    assert told == "cannot be reached: no answer to TLS in time (frozen, or a port without TLS)"


async def test_an_operator_reads_by_a_word_why_an_open_connection_fails(trouble: Trouble) -> None:
    client = RedisClient(trouble.server.url, PATIENCE)
    await client.execute(("PING",))
    trouble.server.pause()
    client.timeout_seconds = 0.2
    with pytest.raises(Unavailable) as frozen:
        await client.execute(("PING",))
    assert describe_for_operator(frozen.value) == "cannot be reached: no answer in time (frozen)"
    client.timeout_seconds = PATIENCE
    asked = asyncio.create_task(client.execute(("PING",)))
    await asyncio.sleep(0)
    trouble.server.kill()
    with pytest.raises(Unavailable) as gone:
        await asked
    assert "NoReply" not in describe_for_operator(gone.value)
    await client.close()


async def test_a_write_succeeds_without_the_right_to_publish(trouble: Trouble) -> None:
    request = IdempotencyKey.from_client(trouble.author, "key", b"payload")
    run(trouble.server, "ACL", "SETUSER", "default", "resetchannels")
    with trouble.server.client() as client, pytest.raises(redis.ResponseError):
        client.publish("events:post", "x")
    made = await trouble.post(request)
    assert await trouble.post(request) == made
    assert entries(trouble.server) == 1


async def test_a_partly_forbidden_write_has_an_unknown_outcome(trouble: Trouble) -> None:
    run(trouble.server, "ACL", "SETUSER", "default", "-zadd")
    with pytest.raises(OutcomeUnknown):
        await trouble.post()
    assert entries(trouble.server) == 1


def _busy(server: RedisProcess) -> bool:
    try:
        run(server, "PING")
    except redis.ResponseError as error:
        return "BUSY" in str(error)
    return False
