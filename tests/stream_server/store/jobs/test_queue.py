"""The job queue: leases and fences, failures and parking, and workers that find jobs."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from stream_server.errors import Unavailable
from stream_server.store.jobs.queue import FAILURES_BEFORE_PARKING, ClaimedJob, PassResult
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import (
    BY_JOBS,
    Interruption,
    Killed,
    drain,
    home,
    job_workers,
    make_due,
    nothing,
)
from tests.stream_server.store.people import People, new_key
from tests.waiting import eventually

pytestmark = pytest.mark.every_redis


SIZES = BY_JOBS


async def _orphan(store: Store, people: People, raw: Any) -> tuple[str, str]:
    """Post a status whose request dies before its first pass. Returns the author and the job, which is due."""
    author = await people.user("ada")
    exchange = store._redis.run_pipeline
    Interruption(store, 2, "before", nothing, dies=True)
    with pytest.raises(Killed):
        await people.status(author)
    store._redis.run_pipeline = exchange  # type: ignore[method-assign]  # back from the dead
    assert make_due(raw) == 1
    return author, raw.zrange("{core}:due", 0, 0)[0].decode()


async def test_one_of_twenty_concurrent_claims_gets_the_job_and_its_lease(
    store: Store, people: People, raw: Any
) -> None:
    _, job = await _orphan(store, people, raw)
    claims = await asyncio.gather(*(store.job_queue.claim(4) for _ in range(20)))
    assert [claimed.id for each in claims for claimed in each] == [job]
    assert await store.job_queue.claim(4) == []
    lease = raw.zscore("{core}:due", job) - raw.time()[0] * 1000
    assert 8000 < lease <= 11_000


async def test_an_older_fence_changes_nothing(store: Store, people: People, raw: Any) -> None:
    _, job = await _orphan(store, people, raw)
    (first,) = await store.job_queue.claim(1)
    make_due(raw)
    (second,) = await store.job_queue.claim(1)
    assert int(second.fence) > int(first.fence)
    kept = raw.hgetall("{core}:job:" + job)
    assert await store.job_queue.begin_pass(first) is None
    assert await store.job_queue.advance(PassResult(first)) == ["stale"]
    assert await store.job_queue.delete_dependents(first) == "stale"
    assert await store.job_queue.record_failure(first) is False
    assert raw.hgetall("{core}:job:" + job) == kept
    assert await store.job_runner.run_pass(second) == "done"


async def test_a_job_is_parked_after_ten_failures_and_can_be_unparked(
    store: Store, people: People, raw: Any, caplog: pytest.LogCaptureFixture
) -> None:
    author, job = await _orphan(store, people, raw)
    raw.set(f"home:{{{author}}}", "no sorted set")
    working = job_workers(store)
    for tried in range(1, FAILURES_BEFORE_PARKING + 1):
        assert raw.zcard("{core}:parked") == 0
        make_due(raw)
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


async def test_a_parked_job_that_is_enqueued_again_is_parked_no_more(store: Store, people: People, raw: Any) -> None:
    author, job = await _orphan(store, people, raw)
    raw.set(f"home:{{{author}}}", "no sorted set")
    for _ in range(FAILURES_BEFORE_PARKING):
        make_due(raw)
        await job_workers(store).run_until_empty()
    assert await store.job_queue.list_parked() == [job]
    raw.delete(f"home:{{{author}}}")
    await store.statuses.delete(author, job.removeprefix("status-"), new_key())
    assert await store.job_queue.list_parked() == []


async def test_retries_of_a_job_back_off_up_to_a_minute(store: Store, people: People, raw: Any) -> None:
    author, job = await _orphan(store, people, raw)
    raw.set(f"home:{{{author}}}", "no sorted set")
    pauses: list[tuple[float, float]] = []  # the least and the most that each can have been

    def now_ms() -> float:
        seconds, micros = raw.time()
        return float(seconds * 1000 + micros / 1000)

    for _ in range(FAILURES_BEFORE_PARKING - 1):
        make_due(raw)
        began = now_ms()
        await job_workers(store).run_until_empty()
        due = raw.zscore("{core}:due", job)
        pauses.append((due - now_ms(), due - began))
    assert all(least <= most for (least, _), (_, most) in pairwise(pauses[:-1]))  # the last two are both a minute
    assert pauses[0][0] <= 500
    assert pauses[0][1] >= 300
    assert pauses[-1][0] <= 60_000
    assert pauses[-1][1] >= 55_000


async def test_a_due_name_without_a_job_is_removed(store: Store, raw: Any) -> None:
    raw.zadd("{core}:due", {"status-1": 0})
    assert await store.job_queue.claim(4) == []
    assert raw.zcard("{core}:due") == 0


async def test_zero_job_workers_only_wait(store: Store) -> None:
    running = asyncio.create_task(job_workers(store).run(0))
    done, _ = await asyncio.wait({running}, timeout=0.05)
    assert not done
    running.cancel()
    await asyncio.wait({running})


async def test_job_workers_survive_an_unavailable_redis(store: Store, people: People, raw: Any) -> None:
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
    working = job_workers(store)
    running = asyncio.create_task(working.run(1))
    await eventually(lambda: asked >= 3)
    away = False
    await eventually(lambda: len(home(raw, author)) == 1)
    running.cancel()
    await asyncio.wait({running})
    assert working.failed_passes == 0


async def test_an_unknown_job_cannot_be_begun(store: Store) -> None:
    assert await store.job_queue.begin_pass(ClaimedJob("status-1", "1")) is None
