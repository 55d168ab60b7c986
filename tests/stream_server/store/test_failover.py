"""Sentinels and a failover: what was acknowledged is there, in order and once; writes meanwhile are refused at once."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from traceback import format_exception
from typing import NamedTuple, Protocol

import pytest

from stream_server.errors import ApiError, OutcomeUnknown, Unavailable
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People
from tests.stream_server.store.replicas import replication, run
from tests.stream_server.store.watching import SERVICE, Watch, watch
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

QUICK = 1.0
"""The time-out of a server: what a write takes at most, whatever is broken."""

WRITERS = 4


@pytest.fixture
async def watched(redis_server: RedisProcess) -> AsyncIterator[Watch]:
    """A primary, two replicas and three Sentinels that know each other."""
    with watch(Path(redis_server._command[0])) as made:
        await made.settled()
        yield made


class Open(Protocol):
    """Makes a store of the watched service, opened; it is closed behind the test, whatever the test says."""

    async def __call__(self, *, write_replicas: int = 0) -> Store:
        """The store."""
        ...


@pytest.fixture
async def opened(watched: Watch) -> AsyncIterator[Open]:
    """How a test opens a store."""
    async with AsyncExitStack() as stack:

        async def make(*, write_replicas: int = 0) -> Store:
            store = Store(watched.url, timeout_seconds=QUICK, min_write_replicas=write_replicas)
            stack.push_async_callback(store.close)
            await store.open()
            return store

        yield make


class Attempt(NamedTuple):
    """One try of a write: how long it took, and what it failed with."""

    seconds: float
    error: ApiError | None


class Writer:
    """Posts numbers one after the other, each until it is acknowledged if it ``insists``, under a key of its own."""

    def __init__(self, store: Store, uid: str, *, insists: bool) -> None:
        self._store = store
        self.uid = uid
        self._insists = insists
        self.attempts: list[Attempt] = []
        self.acknowledged: list[str] = []
        self.ids: list[str] = []

    @property
    def failures(self) -> list[ApiError]:
        """What attempts failed with."""
        return [attempt.error for attempt in self.attempts if attempt.error is not None]

    async def run(self) -> None:
        """Until cancelled."""
        number = 0
        while True:
            if await self._try(str(number)) or not self._insists:
                number += 1
            await asyncio.sleep(0.005)

    async def _try(self, message: str) -> bool:
        began, error = time.monotonic(), None
        request = IdempotencyKey.from_client(self.uid, message, b"payload")
        try:
            made = await self._store.statuses.create(self.uid, StatusDraft(message=message), request)
            self.acknowledged.append(message)
            self.ids.append(str(json.loads(made)["id"]))
        except (Unavailable, OutcomeUnknown) as failure:
            error = failure
        self.attempts.append(Attempt(time.monotonic() - began, error))
        return error is None


class Crowd:
    """Some of them at once."""

    def __init__(self, writers: list[Writer]) -> None:
        self.writers = writers
        self._tasks = [asyncio.create_task(writer.run()) for writer in writers]

    async def go_on(self, count: int) -> None:
        """Until each has so many more acknowledged; raises what a writer failed with."""
        wanted = {writer.uid: len(writer.acknowledged) + count for writer in self.writers}

        def there() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return all(len(writer.acknowledged) >= wanted[writer.uid] for writer in self.writers)

        await eventually(there, seconds=90, what="writes acknowledged")

    async def stop(self) -> None:
        """No more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _crowd(store: Store, *, insist: bool) -> Crowd:
    return Crowd([Writer(store, uid, insists=insist) for uid in await People(store).users(WRITERS)])


async def _posts(server: RedisProcess) -> dict[str, list[tuple[str, str]]]:
    """What is on the log there: by author, the ids and messages in its order."""
    store, found = Store(server.url, timeout_seconds=PATIENCE), dict[str, list[tuple[str, str]]]()
    after, number = LOG_START, 0
    while entries := await store.log.read(after, 1000):
        for entry in entries:
            number += 1
            assert entry.position.n == number
            status = json.loads(entry.wire)["status"]
            found.setdefault(status["uid"], []).append((status["id"], status["message"]))
        after = entries[-1].position
    await store.close()
    return found


async def _copied(watched: Watch) -> None:
    """Until each replica has all that the primary has by now."""
    head = replication(watched.servers[0])["master_repl_offset"]

    def there() -> bool:
        return all(replication(replica)["slave_repl_offset"] >= head for replica in watched.servers[1:])

    await eventually(there, seconds=30, what="all of it copied")


async def test_a_failover_under_writes_loses_nothing_that_replicas_confirmed(watched: Watch, opened: Open) -> None:
    """Everything acknowledged is on the new primary's log, in order and once, also what was repeated under its key.

    Each attempt was answered at once, with a 503 while there was no primary.
    """
    store = await opened(write_replicas=1)
    crowd = await _crowd(store, insist=True)
    await crowd.go_on(50)
    watched.servers[0].kill()
    await watched.failed_over()
    await crowd.go_on(50)
    await crowd.stop()
    new = await watched.failed_over()
    assert replication(new)["role"] == "master"
    posts = await _posts(new)
    for writer in crowd.writers:
        told = posts[writer.uid][: len(writer.acknowledged)]  # the last one may have been cut off when all stopped
        assert told == list(zip(writer.ids, writer.acknowledged, strict=True))
        assert [message for _, message in told] == [str(number) for number in range(len(told))]
        assert len(posts[writer.uid]) <= len(told) + 1
        assert writer.failures, "no write met the failover"
        assert {failure.retry_after for failure in writer.failures} == {1}
        assert max(attempt.seconds for attempt in writer.attempts) < 5 * QUICK


async def test_without_replicas_a_failover_tells_what_is_left(watched: Watch, opened: Open) -> None:
    """Acknowledged writes may be lost then, but none is doubled or out of order, and writing goes on."""
    store = await opened()
    crowd = await _crowd(store, insist=False)
    await crowd.go_on(50)
    watched.servers[0].kill()
    await watched.failed_over()
    await crowd.go_on(50)
    await crowd.stop()
    posts = await _posts(await watched.failed_over())
    for writer in crowd.writers:
        there = [message for _, message in posts[writer.uid]]
        assert there == sorted(set(there), key=int)
        assert len(set(writer.acknowledged) - set(there)) < len(writer.acknowledged) / 2
        assert set(writer.acknowledged[-50:]) <= set(there)


@pytest.mark.parametrize("replicas", [0, 2])
async def test_a_planned_failover_leaves_an_old_primary_that_is_well(
    watched: Watch, opened: Open, replicas: int
) -> None:
    """It takes writes for ten seconds more: nobody makes one there, though every connection to it would do.

    With as many ``write_replicas`` as there are, what was acknowledged meanwhile is there too, however late it is seen.
    """
    store = await opened(write_replicas=replicas)
    crowd = await _crowd(store, insist=True)
    await crowd.go_on(50)
    before = {writer.uid: len(writer.acknowledged) for writer in crowd.writers}
    await _copied(watched)  # else a replica that is slow is promoted without some of them
    watched.sentinels[0].run("SENTINEL", "FAILOVER", SERVICE)
    new = await watched.failed_over()
    posts = {writer.uid: len(writer.acknowledged) for writer in crowd.writers}
    assert replication(watched.servers[0])["role"] == "master"
    await crowd.go_on(50)
    await crowd.stop()
    told = await _posts(new)
    for writer in crowd.writers:
        there = [message for _, message in told[writer.uid]]
        assert len(set(there)) == len(there)
        known = writer.acknowledged if replicas else writer.acknowledged[: before[writer.uid]]
        assert set(known + writer.acknowledged[posts[writer.uid] :]) <= set(there)
        assert any(isinstance(failure, Unavailable) for failure in writer.failures), "none met the failover"


async def test_who_listens_hears_the_new_primary(watched: Watch, opened: Open) -> None:
    """The subscription ends with the old one, by an error of ours; the next one is in force where writes go."""
    store = await opened()
    uid = await People(store).user("Ann")
    async with aclosing(store.log.subscribe()) as messages:
        assert await anext(messages) is None
        await People(store).status(uid, "before")
        assert b'"before"' in (await anext(messages) or b"")
        watched.servers[0].kill()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(anext(messages), 60)
    await watched.failed_over()
    await eventually(lambda: _answers(store), seconds=60, what="the new primary found")
    async with aclosing(store.log.subscribe()) as messages:
        assert await anext(messages) is None
        await People(store).status(uid, "after")
        assert b'"after"' in (await anext(messages) or b"")


async def test_an_old_primary_that_comes_back_is_written_to_no_more(watched: Watch, opened: Open) -> None:
    """Frozen, overtaken, and thawed: connections to it are there still, and are not used again."""
    store = await opened()
    old = watched.servers[0]
    uid = await People(store).user("Ann")
    await asyncio.gather(*(People(store).status(uid, "before") for _ in range(10)))
    old.pause()
    with pytest.raises(OutcomeUnknown):
        await People(store).status(uid, "while")
    new = await watched.failed_over()
    await eventually(lambda: _answers(store), seconds=60, what="the new primary found")
    old.resume()
    for _ in range(10):
        await asyncio.gather(*(People(store).status(uid, "after") for _ in range(10)))
    written = [message for _, message in (await _posts(new))[uid]]
    assert written.count("after") == 100
    await eventually(lambda: replication(old)["role"] == "slave", seconds=60, what="the old one demoted")
    assert [message for _, message in (await _posts(new))[uid]] == written


async def test_a_replica_of_the_service_is_read_from(watched: Watch) -> None:
    """One of the two; when it dies the other one, and none that is no replica."""
    link = RedisClient(watched.url, QUICK, replica=True)
    assert await _role(link) == b"slave"
    first = await _port(link)
    next(server for server in watched.servers if server.port == first).kill()
    (other,) = (server for server in watched.servers[1:] if server.port != first)
    await eventually(lambda: _is(link, other), seconds=60, what="the other replica found")
    other.kill()
    await eventually(lambda: _gone(link), seconds=60, what="no replica left")
    await link.close()


async def test_sentinels_that_are_gone_are_done_without(watched: Watch) -> None:
    """One of three is enough to be told; with none, it is said that nothing was written."""
    for sentinel in watched.sentinels[:2]:
        sentinel.kill()
    link = RedisClient(watched.url, PATIENCE)
    assert await _port(link) == watched.servers[0].port
    watched.sentinels[2].kill()
    assert await _port(link) == watched.servers[0].port  # who is connected needs no Sentinel
    run(watched.servers[0], "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await eventually(lambda: _gone(link), what="the connection ended, and nobody says where to go")
    await link.close()


async def test_credentials_go_to_whom_they_are_for(watched: Watch) -> None:
    """Those before the hosts to Redis, with the database; those behind the question mark to the Sentinels.

    None of them is in what is said when they are wrong.
    """
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
        with pytest.raises(Unavailable) as told:
            await link.execute(("PING",))
        assert "hunter" not in "".join(format_exception(told.value))
        await link.close()


async def _answers(store: Store) -> bool:
    try:
        await store.ping()
    except Unavailable:
        return False
    return True


async def _role(link: RedisClient) -> bytes:
    (told,) = await link.execute(("ROLE",))
    return bytes(told[0])


async def _port(link: RedisClient) -> int:
    (told,) = await link.execute(("CONFIG", "GET", "port"))
    return int(told[1])


async def _is(link: RedisClient, server: RedisProcess) -> bool:
    try:
        return await _port(link) == server.port
    except Unavailable:
        return False


async def _gone(link: RedisClient) -> bool:
    try:
        await link.execute(("PING",))
    except Unavailable:
        return True
    return False
