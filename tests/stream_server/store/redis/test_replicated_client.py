"""Reads from replicas: as if the primary had answered, whatever happens to a replica."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

import pytest

from stream_server.errors import NotFound
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.replica import Replica, ReplicaState
from stream_server.store.redis.replicated_client import begin_reads
from stream_server.store.store import Store
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.replicas import linked, replication, run, servers
from tests.stream_server.store.scenes import items_of
from tests.waiting import eventually

Result = TypeVar("Result")

NOWHERE = ("127.0.0.1", "1")
"""An address where no primary is: a replica of it gets nothing, and keeps its history."""


class Site:
    """A primary with two replicas, a process that writes, and a process that reads."""

    def __init__(self, primary: RedisProcess, near: Sequence[RedisProcess], writer: Store, reader: Store) -> None:
        self.primary, self.near, self.writer, self.reader = primary, near, writer, reader
        self.replicas: Sequence[Replica] = reader.replicas
        self.people = People(writer)

    async def read(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Make a call of the reader as a request that only reads makes it."""

        async def request() -> Result:
            begin_reads()
            return await call()

        return await asyncio.create_task(request(), context=copy_context())

    async def newest(self, uid: str) -> str:
        """The newest status of a home timeline, empty for none."""
        page = await self.read(lambda: self.reader.timelines.read_home(uid, PageRequest(count=1)))
        return items_of(page)[0].split(b'"')[3].decode() if page.body else ""

    async def expect(self, *states: ReplicaState) -> None:
        """Read until the replicas have these states."""

        async def have() -> bool:
            await self.newest("1")
            return tuple(each.state for each in self.replicas) == states

        await eventually(have, what=f"the states {states}")

    def answered(self) -> int:
        return sum(each.answered for each in self.replicas)


@pytest.fixture
async def site(redis_server: RedisProcess) -> AsyncIterator[Site]:
    with servers(Path(redis_server._command[0]), 3) as (primary, *near):
        for each in near:
            each.replica_of(primary)
        for each in near:
            await linked(each)
        urls = " ".join(each.url for each in near)
        async with open_store(primary.url) as writer, open_store(primary.url, replica_urls=urls) as reader:
            made = Site(primary, near, writer, reader)
            await made.expect(ReplicaState.USABLE, ReplicaState.USABLE)
            yield made


both_engines = pytest.mark.parametrize("redis_server", sorted(binaries()), indirect=True)


def calls(server: RedisProcess) -> int:
    """How many commands for pages a server has run."""
    stats = run(server, "INFO", "commandstats")
    return sum(stats[f"cmdstat_{name}"]["calls"] for name in ("zrange", "hmget") if f"cmdstat_{name}" in stats)


@both_engines
async def test_the_pages_of_requests_that_only_read_come_from_all_replicas(site: Site) -> None:
    ann, bob = await site.people.users(2)
    await site.writer.follows.follow(bob, ann, new_key())
    for number in range(5):
        await site.people.status(ann, f"status {number}")
    for each in (site.primary, *site.near):
        run(each, "CONFIG", "RESETSTAT")
    pages = {(await site.read(lambda: site.reader.timelines.read_home(bob, PageRequest()))).body for _ in range(20)}
    assert pages == {(await site.writer.timelines.read_home(bob, PageRequest())).body}
    of_a_page = 1 + 5 + 3  # the timeline, the statuses, the author, and twice what was removed last
    assert calls(site.primary) <= of_a_page * (1 + 5)  # the writer's page; a replica may be late once in a while
    assert all(calls(each) for each in site.near)


async def test_other_calls_are_answered_by_the_primary(site: Site) -> None:
    """Outside of a request, in a request that writes, and after a request has asked the primary."""
    (ann,) = await site.people.users(1)
    status = (await site.people.status(ann))["id"]
    before = site.answered()
    assert await site.reader.statuses.get(ann, status)
    assert site.answered() == before

    async def write_and_read() -> None:
        await site.reader.favorites.add(ann, status, new_key())
        assert await site.reader.favorites.is_favorite(ann, status)

    await site.read(write_and_read)
    assert site.answered() == before


@both_engines
async def test_a_read_sees_every_write_that_was_answered(site: Site) -> None:
    """Another process has written, with and without an entry on the log. No token or note goes between the two."""
    writer, reader, read = site.writer, site.reader, site.read
    ann, bob = await site.people.users(2)
    before = site.answered()
    for _ in range(20):
        await writer.follows.follow(bob, ann, new_key())
        status = (await site.people.status(ann))["id"]
        assert await site.newest(bob) == status
        await writer.favorites.add(bob, status, new_key())
        assert await read(lambda: reader.favorites.is_favorite(bob, status))  # noqa: B023 - awaited at once
        await writer.mutes.mute(bob, ann, new_key())
        assert await site.newest(bob) != status
        await writer.mutes.unmute(bob, ann, new_key())
        await writer.blocks.block(ann, bob, new_key())
        with pytest.raises(NotFound):
            await read(lambda: reader.statuses.get(bob, status))  # noqa: B023 - awaited at once
        with pytest.raises(NotFound):
            await read(lambda: reader.users.get(bob, ann))
        await writer.blocks.unblock(ann, bob, new_key())
        await writer.users.update(ann, {"protected": True}, new_key())
        with pytest.raises(NotFound):
            await read(lambda: reader.statuses.get(bob, status))  # noqa: B023 - awaited at once
        await writer.users.update(ann, {"protected": False}, new_key())
        assert await read(lambda: reader.statuses.get(bob, status))  # noqa: B023 - awaited at once
        await writer.statuses.delete(ann, status, new_key())
        with pytest.raises(NotFound):
            await read(lambda: reader.statuses.get(bob, status))  # noqa: B023 - awaited at once

    async def is_answered_by_a_replica() -> bool:
        """On a busy machine the replicas may have been behind all the time. Then the primary has answered."""
        await read(lambda: reader.users.get(bob, ann))
        return site.answered() > before

    await eventually(is_answered_by_a_replica)


async def cut(site: Site, number: int) -> None:
    """Let a replica get no more data."""
    run(site.near[number], "REPLICAOF", *NOWHERE)


Fault = Callable[[RedisProcess, RedisProcess], object]

FAULTS: dict[str, tuple[Fault, ReplicaState]] = {
    "gets no data": (lambda replica, _: run(replica, "REPLICAOF", *NOWHERE), ReplicaState.BEHIND),
    "stands still": (lambda replica, _: replica.pause(), ReplicaState.AWAY),
    "is dead": (lambda replica, _: replica.kill(), ReplicaState.AWAY),
    "was promoted": (lambda replica, _: run(replica, "REPLICAOF", "NO", "ONE"), ReplicaState.FOREIGN),
    "is of another primary": (lambda replica, other: replica.replica_of(other), ReplicaState.FOREIGN),
}


@both_engines
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_replica_that_is_no_help_costs_nothing_else(site: Site, fault: str) -> None:
    """Every read sees the newest status. The other replica answers, and later the mended one again."""
    ann = (await site.people.users(1))[0]
    replica, (break_it, state) = site.near[0], FAULTS[fault]
    with servers(Path(site.primary._command[0]), 1) as (stranger,):
        break_it(replica, stranger)
        if fault == "is of another primary":
            await eventually(lambda: replication(replica)["master_replid"] == replication(stranger)["master_replid"])

        async def is_left() -> bool:
            status = (await site.people.status(ann))["id"]
            assert await site.newest(ann) == status
            return site.replicas[0].state is state

        await eventually(is_left, what=f"the state {state}")
        before, questions = site.replicas[1].answered, site.replicas[0].refused
        for _ in range(5):
            status = (await site.people.status(ann))["id"]
            assert await site.newest(ann) == status
        assert site.replicas[0].refused == questions  # nobody asks it but the probe
        await eventually(lambda: _reads(site, ann, before), what="answers of the other replica")
        replica.resume()
        if fault == "is dead":
            replica.start()
        replica.replica_of(site.primary)
        await site.expect(ReplicaState.USABLE, ReplicaState.USABLE)
        assert await site.newest(ann) == status


async def _reads(site: Site, uid: str, before: int) -> bool:
    await site.newest(uid)
    return site.replicas[1].answered > before


@both_engines
async def test_a_replica_that_refuses_reads_is_left_until_it_answers_them(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """It tells its position and has all writes, but its users may not read, or its part of a cluster is down."""
    ann = (await site.people.users(1))[0]
    status = (await site.people.status(ann))["id"]
    for each in site.near:
        run(each, "ACL", "SETUSER", "default", "-@read")
    await site.expect(ReplicaState.AWAY, ReplicaState.AWAY)
    questions = [replica.refused for replica in site.replicas]
    probes = [0, 0]
    for at, replica in enumerate(site.replicas):
        replica._ask_primary = _counted(probes, at, replica._ask_primary)
    await eventually(lambda: min(probes) > 3, what="some probes")
    assert await site.newest(ann) == status
    assert [replica.refused for replica in site.replicas] == questions
    assert len([line for line in caplog.messages if "read from" in line]) == len(site.near), "one line for each"
    for each in site.near:
        run(each, "ACL", "SETUSER", "default", "+@read")
    await site.expect(ReplicaState.USABLE, ReplicaState.USABLE)


def _counted(counts: list[int], at: int, call: Callable[[], Awaitable[Result]]) -> Callable[[], Awaitable[Result]]:
    """Return the call, which then also counts itself."""

    async def counted() -> Result:
        counts[at] += 1
        return await call()

    return counted


@both_engines
async def test_the_primary_is_no_replica_of_itself(redis_url: str) -> None:
    async with open_store(redis_url, replica_urls=redis_url) as store:
        ann, (replica,) = await People(store).user("Ann"), store.replicas
        replica.start_probe()
        await eventually(lambda: replica.state is ReplicaState.FOREIGN, what="the state of the primary")
        assert await store.users.get_own(ann)
        assert replica.answered == 0


async def test_without_a_usable_replica_the_primary_is_not_asked_for_its_position(site: Site) -> None:
    """It gets the commands that it gets without replicas, and those of the probes."""
    ann = (await site.people.users(1))[0]
    for each in site.near:
        each.kill()
    await site.expect(ReplicaState.AWAY, ReplicaState.AWAY)
    for replica in site.replicas:
        await replica.stop_probe()
    run(site.primary, "CONFIG", "RESETSTAT")
    status = (await site.people.status(ann))["id"]
    assert [await site.newest(ann) for _ in range(5)] == [status] * 5
    stats = run(site.primary, "INFO", "commandstats")
    assert "cmdstat_zrange" in stats
    assert stats.get("cmdstat_info", {"calls": 0})["calls"] <= 1  # this one


async def test_texts_are_not_judged_by_older_facts_of_another_replica(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica that sent the text is dead when the facts are read. The other one does not know of the protection."""
    ann, bob = await site.people.users(2)
    await site.people.status(ann, "for all")
    read, answered = Replica.read, list[Replica]()

    async def interrupted(replica: Replica, *arguments: Any) -> Any:
        if answered:
            return await read(replica, *arguments)
        answered.append(replica)
        at = site.replicas.index(replica)
        await cut(site, 1 - at)
        await site.writer.users.update(ann, {"protected": True}, new_key())
        secret = (await site.people.status(ann, "for followers"))["id"]
        await eventually(lambda: run(site.near[at], "EXISTS", "{core}:status:" + secret), what="a copy")
        answer = await read(replica, *arguments)
        assert answer is not None
        site.near[at].kill()
        return answer

    monkeypatch.setattr(Replica, "read", interrupted)
    page = await site.read(lambda: site.reader.timelines.read_profile(bob, ann, PageRequest()))
    assert (answered != [], page.body) == (True, b"")


@pytest.mark.parametrize("seed", range(2))
async def test_no_read_is_stale_while_replicas_fail_and_come_back(site: Site, seed: int) -> None:
    """One task writes, four read, and one breaks and mends replicas at random."""
    source = random.Random(seed)
    ann = (await site.people.users(1))[0]
    newest, reads = 0, 0

    async def write() -> None:
        nonlocal newest
        while reads < 400:
            newest = int((await site.people.status(ann))["id"])

    async def look() -> None:
        nonlocal reads
        while reads < 400:
            acknowledged = newest
            assert int(await site.newest(ann) or 0) >= acknowledged
            reads += 1

    async def disturb() -> None:
        while reads < 400:
            number = source.randrange(2)
            replica, goal = site.near[number], min(400, reads + source.randrange(5, 20))
            if source.random() < 0.5:
                replica.pause()
            else:
                await cut(site, number)
            await eventually(lambda: reads >= goal, what="reads")  # noqa: B023 - awaited at once
            replica.resume()
            replica.replica_of(site.primary)

    await asyncio.gather(write(), look(), look(), look(), look(), disturb())
    assert site.answered() > 0
    for each in site.near:
        await linked(each)
    await site.expect(ReplicaState.USABLE, ReplicaState.USABLE)
