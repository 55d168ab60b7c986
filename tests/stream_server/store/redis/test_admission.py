"""Admission of reads: few are sent to Redis at once, in order of their requests, and none times out in the queue."""

import asyncio
from contextlib import nullcontext, suppress

import pytest

from stream_server.errors import Unavailable
from stream_server.store.redis import admission
from stream_server.store.redis.admission import ReadAdmission
from stream_server.store.redis.client import RedisClient
from tests.redis_process import RedisProcess
from tests.stream_server.store.redis.jumping_clock import FarRedis, JumpingClock
from tests.waiting import PATIENCE, eventually

CROWD = 20
TIMEOUT_SECONDS = 1.0


class Requests:
    """Requests of several reads each. ``most`` counts concurrent reads, ``done`` lists finished requests in order."""

    def __init__(self, reads: ReadAdmission, times: int) -> None:
        self.reads = reads
        self.times = times
        self.asking = self.most = 0
        self.done: list[int] = []

    async def run(self, number: int) -> None:
        with admission.admit_through(self.reads):
            for _ in range(self.times):
                await self._ask()
        self.done.append(number)

    async def _ask(self) -> None:
        place = admission.current_admission()
        assert place is not None
        async with place.slot():
            self.asking += 1
            self.most = max(self.most, self.asking)
            await asyncio.sleep(0)  # holds the slot for one iteration of the loop
            self.asking -= 1


async def test_few_reads_run_at_once_and_begun_requests_go_first() -> None:
    requests = Requests(ReadAdmission(2), 3)
    await asyncio.gather(*map(requests.run, range(CROWD)))
    assert requests.most == 2
    assert requests.done == list(range(CROWD))


async def test_a_request_with_many_reads_does_not_delay_short_ones() -> None:
    reads = ReadAdmission(1)
    long, short = Requests(reads, 10 * admission.STREAM_OPEN_ROUND_TRIPS), Requests(reads, 1)
    tasks = [asyncio.create_task(long.run(number)) for number in range(3)]
    await asyncio.sleep(0)  # the long requests start first
    await asyncio.gather(*map(short.run, range(CROWD)))
    assert not long.done, "a long request finished first"
    await asyncio.gather(*tasks)
    assert sorted(long.done) == [0, 1, 2]


async def test_a_cancelled_request_gives_its_slot_to_the_next() -> None:
    requests = Requests(ReadAdmission(1), 1)
    tasks = [asyncio.create_task(requests.run(number)) for number in range(6)]
    await asyncio.sleep(0)  # the first request takes the slot, the others wait
    tasks[2].cancel()  # it waits
    await asyncio.sleep(0)  # the first is done, and gives its slot to the second
    tasks[1].cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
    assert requests.done == [0, 3, 4, 5]
    await asyncio.wait_for(requests.run(6), PATIENCE)


async def test_a_long_wait_is_unavailable_and_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_QUEUE_SECONDS", 0.05)
    reads = ReadAdmission(1)
    async with reads.slot(0):
        with pytest.raises(Unavailable) as failure:
            async with reads.slot(0):
                pytest.fail("two at once")
    assert failure.value.retry_after == 1
    async with reads.slot(0):
        pass


@pytest.mark.parametrize("seconds", [0.0, admission.REDIS_DOWN_AFTER_SECONDS])
async def test_an_unanswered_read_after_a_silence_refuses_all_that_wait(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(admission, "REDIS_DOWN_AFTER_SECONDS", seconds)
    reads, refusals = ReadAdmission(1), list[str]()

    async def ask(*, answered: bool) -> None:
        try:
            async with reads.slot(0):
                await asyncio.sleep(0)  # holds the slot for one iteration of the loop
                _answer(answered=answered)
        except Unavailable as refused:
            refusals.append(refused.message)

    await asyncio.gather(*(ask(answered=False) for _ in range(CROWD)))
    assert refusals.count("silent") == (CROWD if seconds else 1)
    assert len(refusals) == CROWD
    await ask(answered=True)
    assert len(refusals) == CROWD, "the next one asks again"


@pytest.mark.parametrize("admitted", [True, False])
async def test_the_timeout_of_a_read_begins_with_its_slot(
    monkeypatch: pytest.MonkeyPatch, redis_server: RedisProcess, *, admitted: bool
) -> None:
    JumpingClock(monkeypatch)
    async with FarRedis(redis_server.socket) as far:
        link, shared = RedisClient(far.url, TIMEOUT_SECONDS), ReadAdmission()
        await link.execute(("ECHO", "connected"))
        far.seconds_each = TIMEOUT_SECONDS / (4 * admission.MAX_CONCURRENT)

        async def ask() -> bool:
            with admission.admit_through(shared) if admitted else nullcontext():
                try:
                    await link.execute(("ECHO", "here"))
                except Unavailable:
                    return False
            return True

        answered = await asyncio.gather(*(ask() for _ in range(8 * admission.MAX_CONCURRENT)))
        assert all(answered) is admitted
        await link.close()


async def test_a_background_task_does_not_use_the_admission_of_its_request() -> None:
    reads, over = ReadAdmission(1), asyncio.Event()
    asked = Requests(reads, 1)

    async def later() -> None:
        await over.wait()
        await asked._ask()

    with admission.admit_through(reads):
        task = asyncio.create_task(later())
        await asyncio.sleep(0)  # the task starts inside this context
    async with reads.slot(0):
        over.set()
        await eventually(task.done, what="it has asked")
    await task
    assert admission.current_admission() is None


def _answer(*, answered: bool) -> None:
    if not answered:
        raise Unavailable("silent", retry_after=1)
