"""A crowd asks Redis in turn: few at once, who has begun goes on first, and nobody's answer is late for the wait."""

import asyncio
from contextlib import nullcontext, suppress

import pytest

from stream_server.errors import Unavailable
from stream_server.store.redis import admission
from stream_server.store.redis.admission import ReadAdmission
from stream_server.store.redis.client import MAX_CONNECTIONS, RedisClient
from tests.redis_process import RedisProcess
from tests.stream_server.store.jumping import FarRedis, JumpingClock
from tests.waiting import PATIENCE, eventually

CROWD = 20
TIMEOUT_SECONDS = 1.0


class Askers:
    """Requests that ask several times each; ``most`` is how many asked at once, ``done`` who was through, in order."""

    def __init__(self, lane: ReadAdmission, times: int) -> None:
        self.lane = lane
        self.times = times
        self.asking = self.most = 0
        self.done: list[int] = []

    async def run(self, number: int) -> None:
        """One request."""
        with admission.admit_through(self.lane):
            for _ in range(self.times):
                await self._ask()
        self.done.append(number)

    async def _ask(self) -> None:
        place = admission.current_admission()
        assert place is not None
        async with place.slot():
            self.asking += 1
            self.most = max(self.most, self.asking)
            await asyncio.sleep(0)
            self.asking -= 1


async def test_few_ask_at_once_and_who_has_begun_goes_on_first() -> None:
    """Three questions each: were all asked the first one first, nobody would be through before the last has begun."""
    askers = Askers(ReadAdmission(2), 3)
    await asyncio.gather(*map(askers.run, range(CROWD)))
    assert askers.most == 2
    assert askers.done == list(range(CROWD))


async def test_who_asks_on_and_on_is_in_nobodys_way() -> None:
    """Behind the questions of a stream that begins one waits like those who come anew."""
    narrow = ReadAdmission(1)
    long, short = Askers(narrow, 10 * admission.STREAM_OPEN_ROUND_TRIPS), Askers(narrow, 1)
    tasks = [asyncio.create_task(long.run(number)) for number in range(3)]
    await asyncio.sleep(0)
    await asyncio.gather(*map(short.run, range(CROWD)))
    assert not long.done, "they had all their turns before"
    await asyncio.gather(*tasks)
    assert sorted(long.done) == [0, 1, 2]


async def test_who_leaves_takes_no_turn() -> None:
    """While it waits, and at the moment when it was given one."""
    askers = Askers(ReadAdmission(1), 1)
    tasks = [asyncio.create_task(askers.run(number)) for number in range(6)]
    await asyncio.sleep(0)
    tasks[2].cancel()  # it waits
    await asyncio.sleep(0)  # the first is through, and gives its turn to the second
    tasks[1].cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
    assert askers.done == [0, 3, 4, 5]
    await asyncio.wait_for(askers.run(6), PATIENCE)


async def test_who_waits_for_long_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal with a time to come back; then the lane is as free as before."""
    monkeypatch.setattr(admission, "MAX_QUEUE_SECONDS", 0.05)
    narrow = ReadAdmission(1)
    async with narrow.slot(0):
        with pytest.raises(Unavailable) as told:
            async with narrow.slot(0):
                pytest.fail("two at once")
    assert told.value.retry_after == 1
    async with narrow.slot(0):
        pass


@pytest.mark.parametrize("seconds", [0.0, admission.REDIS_DOWN_AFTER_SECONDS])
async def test_while_redis_is_away_nobody_waits_to_be_told(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """When nobody was answered for long, one more who was not has all refused who wait; one late answer has not."""
    monkeypatch.setattr(admission, "REDIS_DOWN_AFTER_SECONDS", seconds)
    narrow, told = ReadAdmission(1), list[str]()

    async def ask(*, answered: bool) -> None:
        try:
            async with narrow.slot(0):
                await asyncio.sleep(0)
                _answer(answered=answered)
        except Unavailable as refused:
            told.append(refused.message)

    await asyncio.gather(*(ask(answered=False) for _ in range(CROWD)))
    assert told.count("silent") == (CROWD if seconds else 1)
    assert len(told) == CROWD
    await ask(answered=True)
    assert len(told) == CROWD, "the next one asks again"


@pytest.mark.parametrize("in_turn", [True, False])
async def test_the_time_for_an_answer_begins_with_ones_turn(
    monkeypatch: pytest.MonkeyPatch, redis_server: RedisProcess, *, in_turn: bool
) -> None:
    """All of a crowd are answered, though together they take longer than one may; without turns they are refused."""
    JumpingClock(monkeypatch)
    async with FarRedis(redis_server.socket) as far:
        link, shared = RedisClient(far.url, TIMEOUT_SECONDS), ReadAdmission()
        await asyncio.gather(*(link.execute(("ECHO", "connected")) for _ in range(MAX_CONNECTIONS)))
        far.seconds = TIMEOUT_SECONDS / 4

        async def ask() -> bool:
            with admission.admit_through(shared) if in_turn else nullcontext():
                try:
                    await link.execute(("ECHO", "here"))
                except Unavailable:
                    return False
            return True

        answered = await asyncio.gather(*(ask() for _ in range(6 * MAX_CONNECTIONS)))
        assert all(answered) is in_turn
        await link.close()


async def test_what_a_request_left_behind_goes_its_own_way() -> None:
    """A task that it began is no part of the crowd once the request is over."""
    narrow, over = ReadAdmission(1), asyncio.Event()
    asked = Askers(narrow, 1)

    async def later() -> None:
        await over.wait()
        await asked._ask()

    with admission.admit_through(narrow):
        task = asyncio.create_task(later())
        await asyncio.sleep(0)
    async with narrow.slot(0):
        over.set()
        await eventually(task.done, what="it has asked")
    await task
    assert admission.current_admission() is None


def _answer(*, answered: bool) -> None:
    if not answered:
        raise Unavailable("silent", retry_after=1)
