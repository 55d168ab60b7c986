"""Repair: each fault is found, reported and fixed once, and a correct store has no findings."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stream_server.store.jobs import repair
from stream_server.store.jobs.upkeep import RepairLoop
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import BY_JOBS, check_timelines, drain, home, job_workers
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import dump
from tests.waiting import eventually

pytestmark = pytest.mark.every_redis


class World:
    """A small correct store, to be damaged."""

    def __init__(self, store: Store, people: People, raw: Any) -> None:
        self.store, self.people, self.raw = store, people, raw

    async def fill(self) -> None:
        """Ada has followers, statuses, a like, a comment and a repost, and is on a list."""
        self.ada, self.bob, self.carl = await self.people.users(3)
        for follower in (self.bob, self.carl):
            await self.store.follows.follow(follower, self.ada, new_key())
        made = await self.store.lists.create(self.bob, "friends", "", False, new_key())
        self.list = made.decode().partition('"id":"')[2].partition('"')[0]
        await self.store.lists.add_member(self.bob, self.list, self.ada, new_key())
        self.status = (await self.people.status(self.ada, "one"))["id"]
        self.other = (await self.people.status(self.carl, "another"))["id"]
        await self.people.status(self.bob, "", origin=self.status)
        await self.store.likes.like(self.bob, self.status, new_key())
        await self.store.comments.create(self.carl, self.status, "so true", new_key())

    def damage(self, *command: Any) -> None:
        self.raw.execute_command(*command)


@pytest.fixture
async def world(store: Store, people: People, raw: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(repair, "RECHECK_SECONDS", 0.01)
    made = World(store, people, raw)
    await made.fill()
    return made


FAULTS: dict[str, tuple[str, Callable[[World], tuple[Any, ...]]]] = {
    "followers": ("counter", lambda w: ("HSET", "{core}:user:" + w.ada, "followers", 7)),
    "following": ("counter", lambda w: ("HINCRBY", "{core}:user:" + w.bob, "following", 1)),
    "posts": ("counter", lambda w: ("HSET", "{core}:user:" + w.ada, "posts", 0)),
    "likes": ("counter", lambda w: ("HSET", "{core}:status:" + w.status, "likes", 0)),
    "comments": ("counter", lambda w: ("HSET", "{core}:status:" + w.status, "comments", 9)),
    "reposts": ("counter", lambda w: ("HSET", "{core}:status:" + w.status, "reposts", 3)),
    "a name that is not found": ("names", lambda w: ("ZREM", "{core}:names", f"u 0\t{w.ada}")),
    "a login that is not found": ("names", lambda w: ("ZREM", "{core}:names", f"u1\t{w.bob}")),
    "the name of before": ("names", lambda w: ("HSET", "{core}:user:" + w.ada, "names", "u0\nold")),
    "members": ("counter", lambda w: ("HSET", "{core}:list:" + w.list, "members", 3)),
    "a deleted status at home": ("timeline", lambda w: ("ZADD", f"home:{{{w.bob}}}", 99, "99")),
    "a status of an unfollowed author at home": ("timeline", lambda w: ("ZADD", f"home:{{{w.bob}}}", w.other, w.other)),
    "a missing status": ("timeline", lambda w: ("ZREM", f"home:{{{w.bob}}}", w.status)),
    "a missing own status": ("timeline", lambda w: ("ZREM", f"home:{{{w.carl}}}", w.other)),
    "a missing home": ("timeline", lambda w: ("DEL", f"home:{{{w.bob}}}")),
    "a deleted status on a list": ("timeline", lambda w: ("ZADD", f"timeline:{{{w.list}}}", 99, "99")),
    "a status of a former member on a list": (
        "timeline",
        lambda w: ("ZADD", f"timeline:{{{w.list}}}", w.other, w.other),
    ),
    "a missing status on a list": ("timeline", lambda w: ("DEL", f"timeline:{{{w.list}}}")),
    "a home timeline without a user": ("orphan", lambda _: ("ZADD", "home:{4711}", 1, "1")),
    "a timeline without a list": ("orphan", lambda _: ("ZADD", "timeline:{4711}", 1, "1")),
    "likes without a status": ("orphan", lambda w: ("ZADD", "{core}:likes:4711", 1, w.bob)),
    "comments without a status": ("orphan", lambda _: ("ZADD", "{core}:comments:4711", 1, "1")),
    "reposts without a status": ("orphan", lambda _: ("ZADD", "{core}:reposts:4711", 1, "1")),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_is_found_and_fixed(world: World, raw: Any, fault: str) -> None:
    kind, command = FAULTS[fault]
    world.damage(*command(world))
    before = dump(raw)
    (found,) = await world.store.repair.run(fix=False)
    assert found.kind == kind
    assert found.message
    assert dump(raw) == before
    assert await world.store.repair.run(fix=True) == [found]
    await drain(world.store, raw)
    assert await world.store.repair.run(fix=False) == []
    check_timelines(raw)


async def test_a_correct_store_has_no_findings(world: World, raw: Any) -> None:
    progress: list[tuple[int, int]] = []
    assert await world.store.repair.run(fix=True, on_progress=lambda seen, of: progress.append((seen, of))) == []
    assert progress[-1] == (raw.dbsize(), raw.dbsize())


async def test_users_of_an_earlier_version_are_found_after_a_repair(world: World, raw: Any) -> None:
    """They are no finding each: a large site would have a million of them at once."""
    before = dump(raw)
    world.damage("DEL", "{core}:names")
    for uid in (world.ada, world.bob, world.carl):
        world.damage("HDEL", "{core}:user:" + uid, "names")
    assert await world.store.repair.run(fix=True) == []
    assert dump(raw) == before


async def test_work_of_a_pending_job_is_no_fault(redis_url: str, people: People, raw: Any) -> None:
    ada, bob = await people.users(2)
    await people.store.follows.follow(bob, ada, new_key())
    async with open_store(redis_url, size_limits=BY_JOBS) as store:
        await _post_without_timelines(store, ada)
        assert home(raw, bob) == set()
        assert await store.repair.run(fix=False) == []
        await drain(store, raw)
    check_timelines(raw)


async def _post_without_timelines(store: Store, author: str) -> None:
    exchange = store._redis.run_pipeline

    async def without_timelines(commands: Any, timeout_seconds: float) -> list[Any]:
        if any(command[0] in {"ZADD", "ZREM"} for command in commands):
            raise OSError("no timelines today")
        return await exchange(commands, timeout_seconds)

    store._redis.run_pipeline = without_timelines  # type: ignore[method-assign]  # what the test is for
    await People(store).status(author)
    store._redis.run_pipeline = exchange  # type: ignore[method-assign]  # see above


async def test_a_lost_job_is_due_again(world: World, raw: Any) -> None:
    await world.store.job_queue.request_refill("home", world.bob)
    raw.delete("{core}:due")
    assert [found.kind for found in await world.store.repair.run(fix=True)] == ["orphan"]
    assert raw.zcard("{core}:due") == 1


async def test_parked_jobs_are_reported_and_retried(world: World, raw: Any) -> None:
    await world.store.job_queue.request_refill("home", world.bob)
    (job,) = raw.zrange("{core}:due", 0, -1)
    raw.zadd("{core}:parked", {job: 1})
    raw.zrem("{core}:due", job)
    for fix in (False, True):
        (found,) = await world.store.repair.run(fix=fix)
        assert (found.kind, found.subject) == ("parked", job.decode())
    await job_workers(world.store).run_until_empty()
    assert await world.store.repair.run(fix=False) == []


async def test_one_process_gets_the_repair_of_an_interval(store: Store) -> None:
    assert [await store.repair.lease.rest(60) for _ in range(3)] == [True, False, False]


async def test_the_repair_loop_fixes_counts_and_logs(world: World, raw: Any, caplog: pytest.LogCaptureFixture) -> None:
    world.damage("HSET", "{core}:user:" + world.ada, "followers", 7)
    repair_loop = RepairLoop(world.store.repair)
    running = asyncio.create_task(repair_loop.run(0.1))
    await eventually(lambda: raw.hget("{core}:user:" + world.ada, "followers") == b"2")
    await eventually(lambda: repair_loop.findings == 1)
    running.cancel()
    await asyncio.wait({running})
    assert "followers is 7, should be 2" in caplog.text
