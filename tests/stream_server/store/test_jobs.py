"""The queue: who holds a job, what becomes of one that fails, and who finds it."""

import asyncio
from typing import Any

import pytest

from stream_server.errors import Unavailable
from stream_server.jobs.workers import JobWorkers
from stream_server.store.jobs.queue import FAILURES_BEFORE_PARKING, ClaimedJob, PassResult
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.queue import Doomed, Killed, drain, fresh, home, hurry, receivers
from tests.waiting import eventually

pytestmark = pytest.mark.every_redis


async def _orphan(store: Store, people: People, raw: Any) -> tuple[str, str]:
    """A status whose request died before its first pass; its author and its job, which is due."""
    author = await people.user("ada")
    exchange = store._redis.run_pipeline
    Doomed(store, 2, "before", _nothing, dies=True)
    with pytest.raises(Killed):
        await people.status(author)
    store._redis.run_pipeline = exchange  # type: ignore[method-assign]  # back from the dead
    assert hurry(raw) == 1
    return author, raw.zrange("{core}:due", 0, 0)[0].decode()


async def _nothing() -> None:
    """No deed of others."""


async def test_a_job_is_claimed_by_one(store: Store, people: People, raw: Any) -> None:
    """Twenty ask at once, one gets it; it is due again only when the lease is over."""
    _, job = await _orphan(store, people, raw)
    claims = await asyncio.gather(*(store.job_queue.claim(4) for _ in range(20)))
    assert [claimed.id for each in claims for claimed in each] == [job]
    assert await store.job_queue.claim(4) == []
    lease = raw.zscore("{core}:due", job) - raw.time()[0] * 1000
    assert 8000 < lease <= 11_000


async def test_an_older_fence_advances_nothing(store: Store, people: People, raw: Any) -> None:
    """Who lost a job to another cannot begin, advance, sweep or fail it."""
    _, job = await _orphan(store, people, raw)
    (first,) = await store.job_queue.claim(1)
    hurry(raw)
    (second,) = await store.job_queue.claim(1)
    assert int(second.fence) > int(first.fence)
    kept = raw.hgetall("{core}:job:" + job)
    assert await store.job_queue.begin_pass(first) is None
    assert await store.job_queue.advance(PassResult(first)) == ["stale"]
    assert await store.job_queue.delete_dependents(first) == "stale"
    assert await store.job_queue.record_failure(first) is False
    assert raw.hgetall("{core}:job:" + job) == kept
    assert await store.job_runner.run_pass(second) == "done"


async def test_a_fence_is_never_used_again(store: Store, people: People, raw: Any) -> None:
    """The same pair of people follows, leaves and follows: no late word about the first is taken for the last."""
    ada, bob = await people.users(2)
    before = int(raw.hget("{core}:meta", "fence") or 0)
    for _ in range(3):
        await store.follows.follow(bob, ada, fresh())
        await store.follows.unfollow(bob, ada, fresh())
    assert int(raw.hget("{core}:meta", "fence")) >= before + 6


async def test_a_job_is_parked_after_ten_failures_and_can_be_unparked(
    store: Store, people: People, raw: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried ten times, later each time; then it waits for a person, and loses nothing."""
    author, job = await _orphan(store, people, raw)
    raw.set(f"home:{{{author}}}", "no sorted set")
    working = receivers(store)
    for tried in range(1, FAILURES_BEFORE_PARKING + 1):
        assert raw.zcard("{core}:parked") == 0
        hurry(raw)
        await working.run_until_empty()
        assert working.failed_passes == tried
    assert await store.job_queue.list_parked() == [job]
    assert (await store.job_queue.measure_depth())[1:] == (0, 1)
    assert f"job {job} failed too often and is parked" in caplog.text
    assert "Traceback" not in caplog.text
    raw.delete(f"home:{{{author}}}")
    assert await store.job_queue.unpark(job)
    assert not await store.job_queue.unpark(job)
    await drain(store, raw)
    assert len(home(raw, author)) == 1


async def test_failures_pause_a_job_longer_each_time(store: Store, people: People, raw: Any) -> None:
    """Half a second, one, two …, a minute at most."""
    author, job = await _orphan(store, people, raw)
    raw.set(f"home:{{{author}}}", "no sorted set")
    pauses = []
    for _ in range(FAILURES_BEFORE_PARKING - 1):
        hurry(raw)
        await receivers(store).run_until_empty()
        seconds, micros = raw.time()
        pauses.append(raw.zscore("{core}:due", job) - seconds * 1000 - micros // 1000)
    assert pauses[:-1] == sorted(pauses[:-1])  # the last two are both a minute
    assert 300 <= pauses[0] <= 500
    assert 55_000 <= pauses[-1] <= 60_000


async def test_what_is_due_but_no_job_is_forgotten(store: Store, raw: Any) -> None:
    """A name without a hash keeps nobody busy."""
    raw.zadd("{core}:due", {"status-1": 0})
    assert await store.job_queue.claim(4) == []
    assert raw.zcard("{core}:due") == 0


async def test_receivers_find_jobs_by_themselves(store: Store, people: People, raw: Any) -> None:
    """Nobody tells them: they ask, and what they did is counted."""
    author, _ = await _orphan(store, people, raw)
    working = receivers(store)
    running = asyncio.create_task(working.run(2))
    await eventually(lambda: len(home(raw, author)) == 1)
    await eventually(lambda: working.jobs_done == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert raw.zcard("{core}:due") == 0


async def test_no_receivers_are_a_task_that_only_waits(store: Store) -> None:
    """Nought is a number of receivers too."""
    running = asyncio.create_task(receivers(store).run(0))
    done, _ = await asyncio.wait({running}, timeout=0.05)
    assert not done
    running.cancel()
    await asyncio.wait({running})


async def test_receivers_outlive_a_redis_that_is_away(store: Store, people: People, raw: Any) -> None:
    """While it does not answer nothing is claimed and nothing counted as failed; afterwards all goes on."""
    author, _ = await _orphan(store, people, raw)
    exchange, away = store._redis.run_pipeline, True
    asked = 0

    async def exchanging(commands: Any, timeout_seconds: float) -> list[Any]:
        nonlocal asked
        asked += 1
        if away:
            raise Unavailable("away")
        return await exchange(commands, timeout_seconds)

    store._redis.run_pipeline = exchanging  # type: ignore[method-assign]  # what the test is for
    working = JobWorkers(store.job_queue, store.job_runner, receivers(store)._random)
    running = asyncio.create_task(working.run(1))
    await eventually(lambda: asked >= 3)
    away = False
    await eventually(lambda: len(home(raw, author)) == 1)
    running.cancel()
    await asyncio.wait({running})
    assert working.failed_passes == 0


async def test_a_stale_job_of_no_name_is_nobodys(store: Store) -> None:
    """A job that never was cannot be begun."""
    assert await store.job_queue.begin_pass(ClaimedJob("status-1", "1")) is None
