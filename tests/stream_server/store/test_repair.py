"""Looking everything over: each fault is found, told, mended once, and nothing is found where all is well."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from stream_server.jobs.repair_loop import RepairLoop
from stream_server.store.jobs import repair
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.queue import check, drain, fresh, home, receivers
from tests.waiting import eventually

pytestmark = pytest.mark.every_redis


class Ward:
    """A little world in which all is well, to be hurt."""

    def __init__(self, store: Store, people: People, raw: Any) -> None:
        self.store, self.people, self.raw = store, people, raw

    async def fill(self) -> None:
        """Ada has followers, statuses, a like, a comment and a repost, and stands on a list."""
        self.ada, self.bob, self.carl = await self.people.users(3)
        for follower in (self.bob, self.carl):
            await self.store.follows.follow(follower, self.ada, fresh())
        made = await self.store.lists.create(self.bob, "friends", "", False, fresh())
        self.list = made.decode().partition('"id":"')[2].partition('"')[0]
        await self.store.lists.add_member(self.bob, self.list, self.ada, fresh())
        self.status = (await self.people.status(self.ada, "one"))["id"]
        self.other = (await self.people.status(self.carl, "nobody's business"))["id"]
        await self.people.status(self.bob, "", origin=self.status)
        await self.store.likes.like(self.bob, self.status, fresh())
        await self.store.comments.create(self.carl, self.status, "so true", fresh())

    def hurt(self, *command: Any) -> None:
        """Any command to Redis."""
        self.raw.execute_command(*command)


@pytest.fixture
async def ward(store: Store, people: People, raw: Any, monkeypatch: pytest.MonkeyPatch) -> Ward:
    """The world, filled; the second look comes soon."""
    monkeypatch.setattr(repair, "RECHECK_SECONDS", 0.01)
    made = Ward(store, people, raw)
    await made.fill()
    return made


FAULTS: dict[str, tuple[str, Callable[[Ward], tuple[Any, ...]]]] = {
    "followers": ("counter", lambda w: ("HSET", "{core}:user:" + w.ada, "followers", 7)),
    "following": ("counter", lambda w: ("HINCRBY", "{core}:user:" + w.bob, "following", 1)),
    "posts": ("counter", lambda w: ("HSET", "{core}:user:" + w.ada, "posts", 0)),
    "likes": ("counter", lambda w: ("HSET", "{core}:status:" + w.status, "likes", 0)),
    "comments": ("counter", lambda w: ("HSET", "{core}:status:" + w.status, "comments", 9)),
    "reposts": ("counter", lambda w: ("HSET", "{core}:status:" + w.status, "reposts", 3)),
    "members": ("counter", lambda w: ("HSET", "{core}:list:" + w.list, "members", 3)),
    "a zombie at home": ("timeline", lambda w: ("ZADD", f"home:{{{w.bob}}}", 99, "99")),
    "a stranger at home": ("timeline", lambda w: ("ZADD", f"home:{{{w.bob}}}", w.other, w.other)),
    "a missing status": ("timeline", lambda w: ("ZREM", f"home:{{{w.bob}}}", w.status)),
    "a missing status of one's own": ("timeline", lambda w: ("ZREM", f"home:{{{w.carl}}}", w.other)),
    "a missing home": ("timeline", lambda w: ("DEL", f"home:{{{w.bob}}}")),
    "a zombie on a list": ("timeline", lambda w: ("ZADD", f"timeline:{{{w.list}}}", 99, "99")),
    "a stranger on a list": ("timeline", lambda w: ("ZADD", f"timeline:{{{w.list}}}", w.other, w.other)),
    "a missing status on a list": ("timeline", lambda w: ("DEL", f"timeline:{{{w.list}}}")),
    "a home timeline without a user": ("orphan", lambda _: ("ZADD", "home:{4711}", 1, "1")),
    "a timeline without a list": ("orphan", lambda _: ("ZADD", "timeline:{4711}", 1, "1")),
    "likes of nothing": ("orphan", lambda w: ("ZADD", "{core}:likes:4711", 1, w.bob)),
    "comments of nothing": ("orphan", lambda _: ("ZADD", "{core}:comments:4711", 1, "1")),
    "reposts of nothing": ("orphan", lambda _: ("ZADD", "{core}:reposts:4711", 1, "1")),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_is_found_and_mended(ward: Ward, raw: Any, fault: str) -> None:
    """A look changes nothing; mending does, and then there is nothing to be found."""
    kind, command = FAULTS[fault]
    ward.hurt(*command(ward))
    before = {key: raw.dump(key) for key in raw.keys("*")}
    (found,) = await ward.store.repair.run(fix=False)
    assert found.kind == kind
    assert found.message
    assert {key: raw.dump(key) for key in raw.keys("*")} == before
    assert await ward.store.repair.run(fix=True) == [found]
    await drain(ward.store, raw)
    assert await ward.store.repair.run(fix=False) == []
    check(raw)


async def test_where_all_is_well_nothing_is_found(ward: Ward, raw: Any) -> None:
    """And all keys were looked at, of which it tells."""
    told: list[tuple[int, int]] = []
    assert await ward.store.repair.run(fix=True, on_progress=lambda seen, of: told.append((seen, of))) == []
    assert told[-1] == (raw.dbsize(), raw.dbsize())


async def test_what_a_job_will_see_to_is_no_fault(store: Store, people: People, raw: Any) -> None:
    """A spread, a clean-up or a merge that is still to come explains what is not there yet, or still there."""
    ada, bob = await people.users(2)
    await store.follows.follow(bob, ada, fresh())
    exchange = store._redis.run_pipeline

    async def without_timelines(commands: Any, timeout_seconds: float) -> list[Any]:
        if commands[0][0] in {"ZADD", "ZREM"}:
            raise OSError("no timelines today")
        return await exchange(commands, timeout_seconds)

    store._redis.run_pipeline = without_timelines  # type: ignore[method-assign]  # what the test is for
    await people.status(ada)
    store._redis.run_pipeline = exchange  # type: ignore[method-assign]  # see above
    assert home(raw, bob) == set()
    assert await store.repair.run(fix=False) == []
    await drain(store, raw)
    check(raw)


async def test_a_job_that_is_neither_due_nor_parked_is_due_again(ward: Ward, raw: Any) -> None:
    """Nobody would have found it."""
    await ward.store.job_queue.request_refill("home", ward.bob)
    raw.delete("{core}:due")
    assert [found.kind for found in await ward.store.repair.run(fix=True)] == ["orphan"]
    assert raw.zcard("{core}:due") == 1


async def test_parked_jobs_are_told_and_tried_again(ward: Ward, raw: Any) -> None:
    """A look tells of them, mending gives them another chance."""
    await ward.store.job_queue.request_refill("home", ward.bob)
    (job,) = raw.zrange("{core}:due", 0, -1)
    raw.zadd("{core}:parked", {job: 1})
    raw.zrem("{core}:due", job)
    for mend in (False, True):
        (found,) = await ward.store.repair.run(fix=mend)
        assert (found.kind, found.subject) == ("parked", job.decode())
    await receivers(ward.store).run_until_empty()
    assert await ward.store.repair.run(fix=False) == []


async def test_only_one_has_the_turn(store: Store) -> None:
    """Of all that ask, once in the given time."""
    assert [await store.repair.try_lock(60) for _ in range(3)] == [True, False, False]


async def test_the_caretaker_looks_by_itself(ward: Ward, raw: Any, caplog: pytest.LogCaptureFixture) -> None:
    """After a while, not at the start; what it found is counted and logged."""
    ward.hurt("HSET", "{core}:user:" + ward.ada, "followers", 7)
    caretaker = RepairLoop(ward.store.repair, random.Random(1))
    running = asyncio.create_task(caretaker.run(0.1))
    await eventually(lambda: raw.hget("{core}:user:" + ward.ada, "followers") == b"2")
    await eventually(lambda: caretaker.findings == 1)
    running.cancel()
    await asyncio.wait({running})
    assert "followers is 7, should be 2" in caplog.text
