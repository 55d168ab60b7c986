"""Failover with Sentinels: acknowledged writes survive once and in order, and writes meanwhile fail at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from traceback import format_exception
from typing import Protocol

import pytest

from stream_server.errors import OutcomeUnknown, Unavailable
from stream_server.store.redis.client import RedisClient
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.crowd import Crowd, Writer, gather_crowd, read_posts
from tests.stream_server.store.people import People
from tests.stream_server.store.replicas import replication, run
from tests.stream_server.store.sentinels import SERVICE, Watch, watch
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

QUICK = 1.0
"""The time-out of the store in seconds, and so the longest write under any fault."""


@pytest.fixture
async def watched(redis_server: RedisProcess) -> AsyncIterator[Watch]:
    with watch(Path(redis_server._command[0])) as made:
        await made.settled()
        yield made


class Open(Protocol):
    """Opens a store of the watched service, and closes it after the test."""

    async def __call__(self, *, write_replicas: int = 0) -> Store:
        """The store."""
        ...


@pytest.fixture
async def opened(watched: Watch) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def make(*, write_replicas: int = 0) -> Store:
            store = Store(watched.url, timeout_seconds=QUICK, min_write_replicas=write_replicas)
            stack.push_async_callback(store.close)
            await store.open()
            return store

        yield make


async def _copied(watched: Watch) -> None:
    """Wait until each replica has all that the primary has now."""
    head = replication(watched.servers[0])["master_repl_offset"]

    def there() -> bool:
        return all(replication(replica)["slave_repl_offset"] >= head for replica in watched.servers[1:])

    await eventually(there, what="all of it copied")


@pytest.mark.parametrize("replicas", [0, 2])
async def test_a_planned_failover_stops_writes_to_the_old_primary(watched: Watch, opened: Open, replicas: int) -> None:
    """The old primary takes writes for ten seconds more, on every open connection. A write need not fail meanwhile."""
    store = await opened(write_replicas=replicas)
    crowd = await gather_crowd(store)
    await crowd.go_on(50)
    before = {writer.uid: len(writer.acknowledged) for writer in crowd.writers}
    await _copied(watched)  # else a replica that is slow is promoted without some of them
    watched.sentinels[0].run("SENTINEL", "FAILOVER", SERVICE)
    new = await watched.failed_over()
    posts = {writer.uid: len(writer.acknowledged) for writer in crowd.writers}
    assert new is not watched.servers[0]
    assert replication(watched.servers[0])["role"] == "master"
    await crowd.go_on(50)
    await crowd.stop()
    posts_on_new = await read_posts(new)
    for writer in crowd.writers:
        there = [message for _, message in posts_on_new[writer.uid]]
        assert len(set(there)) == len(there)
        known = writer.acknowledged if replicas else writer.acknowledged[: before[writer.uid]]
        assert set(known + writer.acknowledged[posts[writer.uid] :]) <= set(there)


async def test_a_frozen_primary_gets_no_writes_after_it_resumes(watched: Watch, opened: Open) -> None:
    """Each acknowledged post is on the new primary once, in order. A write that is refused meanwhile is repeated."""
    store = await opened()
    old = watched.servers[0]
    uid, *uids = await People(store).users(11)
    await asyncio.gather(*(People(store).status(uid, "before") for _ in range(10)))
    old.pause()
    with pytest.raises(OutcomeUnknown):
        await People(store).status(uid, "while")
    new = await watched.failed_over()
    await eventually(lambda: _answers(store), what="the new primary found")
    old.resume()
    crowd = Crowd([Writer(store, each) for each in uids])
    await crowd.go_on(10)
    await crowd.stop()
    written = await read_posts(new)
    for writer in crowd.writers:
        own = list(zip(writer.ids, writer.acknowledged, strict=True))
        assert written[writer.uid][: len(own)] == own
        assert len(written[writer.uid]) <= len(own) + 1  # the last one may have been cut off when all stopped
    await eventually(lambda: replication(old)["role"] == "slave", what="the old one demoted")
    assert await read_posts(new) == written


async def test_reads_use_a_replica_and_then_the_other(watched: Watch) -> None:
    link = RedisClient(watched.url, QUICK, replica=True)
    assert await _role(link) == b"slave"
    first = await _port(link)
    next(server for server in watched.servers if server.port == first).kill()
    (other,) = (server for server in watched.servers[1:] if server.port != first)
    await eventually(lambda: _is(link, other), what="the other replica found")
    other.kill()
    await eventually(lambda: _gone(link), what="no replica left")
    await link.close()


async def test_one_sentinel_is_enough_and_an_open_connection_needs_none(watched: Watch) -> None:
    for sentinel in watched.sentinels[:2]:
        sentinel.kill()
    link = RedisClient(watched.url, PATIENCE)
    assert await _port(link) == watched.servers[0].port
    watched.sentinels[2].kill()
    assert await _port(link) == watched.servers[0].port  # who is connected needs no Sentinel
    run(watched.servers[0], "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await eventually(lambda: _gone(link), what="the connection ended, without a Sentinel")
    await link.close()


async def test_credentials_of_redis_and_of_the_sentinels_are_kept_apart_and_secret(watched: Watch) -> None:
    for server in watched.servers:
        run(server, "ACL", "SETUSER", "ann", "on", ">hunter22", "~*", "&*", "+@all")
    for sentinel in watched.sentinels:
        sentinel.run("ACL", "SETUSER", "sam", "on", ">hunter23", "+@all", "allchannels")
    right = watched.url.replace("//", "//ann:hunter22@") + "/1?sentinel_username=sam&sentinel_password=hunter23"
    link = RedisClient(right, PATIENCE)
    who, where = await link.execute(("ACL", "WHOAMI"), ("CLIENT", "INFO"))
    assert (who, b" db=1 " in where) == (b"ann", True)
    await link.close()
    for wrong in (right.replace("hunter22", "hunter24"), right.replace("hunter23", "hunter24")):
        link = RedisClient(wrong, PATIENCE)
        with pytest.raises(Unavailable) as failure:
            await link.execute(("PING",))
        assert "hunter" not in "".join(format_exception(failure.value))
        await link.close()


async def _answers(store: Store) -> bool:
    try:
        await store.ping()
    except Unavailable:
        return False
    return True


async def _role(link: RedisClient) -> bytes:
    (answer,) = await link.execute(("ROLE",))
    return bytes(answer[0])


async def _port(link: RedisClient) -> int:
    (answer,) = await link.execute(("CONFIG", "GET", "port"))
    return int(answer[1])


async def _is(link: RedisClient, server: RedisProcess) -> bool:
    try:
        return await _port(link) == server.port
    except Unavailable:
        return False


async def _gone(link: RedisClient) -> bool:
    try:
        await _port(link)  # by the connection of the same lane
    except Unavailable:
        return True
    return False
