"""A limited number of things happen at once, in the order in which they came, and nobody waits for ever."""

import asyncio
from contextlib import suppress
from functools import partial

import pytest

from stream_server.errors import Unavailable
from stream_server.runtime import fair_queue
from stream_server.runtime.fair_queue import FairQueue, Slot
from tests.waiting import PATIENCE

CROWD = 20


class Work:
    """What happens in a queue. ``most`` counts what happens at once, and ``done`` has the numbers in their order."""

    def __init__(self, slots: int, max_wait_seconds: float = PATIENCE) -> None:
        self.queue = FairQueue(slots, "busy", max_wait_seconds)
        self.now = self.most = 0
        self.done: list[int] = []

    async def run(self, number: int) -> None:
        async with self.queue.slot():
            await self.count(number)

    async def count(self, number: int) -> None:
        """Work for one iteration of the loop."""
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        self.done.append(number)


async def test_few_are_at_work_at_once_and_all_in_their_order() -> None:
    work = Work(2)
    await asyncio.gather(*map(work.run, range(CROWD)))
    assert (work.most, work.done, work.queue._free) == (2, list(range(CROWD)), 2)


async def test_one_that_leaves_gives_its_place_to_the_next() -> None:
    work = Work(1)
    tasks = [asyncio.create_task(work.run(number)) for number in range(6)]
    await asyncio.sleep(0)  # the first takes the slot, the others wait
    tasks[2].cancel()  # it waits
    await asyncio.sleep(0)  # the first is done, and gives its slot to the second
    tasks[1].cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
    assert work.done == [0, 3, 4, 5]
    await asyncio.wait_for(work.run(6), PATIENCE)


async def test_a_long_wait_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those who wait, some are calls. They are refused in their order, a few in each iteration of the loop."""
    monkeypatch.setattr(fair_queue, "MAX_REFUSED_AT_ONCE", 3)
    work, refused = Work(1, 0.05), list[int]()

    def begin(number: int, slot: Slot) -> bool:
        refused.append(number)
        assert slot.is_refused
        assert not slot.is_held
        return False

    async with work.queue.slot():
        for number in range(CROWD):
            work.queue.begin_in_turn(partial(begin, number))
        with pytest.raises(Unavailable) as failure:
            await work.run(0)
    assert (failure.value.retry_after, failure.value.message) == (1, "busy")
    assert refused == list(range(CROWD))
    await work.run(1)


async def test_a_place_can_be_given_back_before_the_end() -> None:
    work = Work(1)
    async with work.queue.slot() as slot:
        assert slot.is_held
        slot.give_back()
        await work.run(0)
        slot.give_back()
    assert work.queue._free == 1


async def test_calls_wait_in_the_same_order() -> None:
    """One of five has nothing to do any more when its turn comes."""
    work, begun, tasks = Work(2), list[int](), list[asyncio.Task[None]]()

    async def hold(number: int, slot: Slot) -> None:
        async with slot:
            assert slot.is_held
            await work.count(number)

    def begin(number: int, slot: Slot) -> bool:
        begun.append(number)
        if number % 5:
            tasks.append(asyncio.create_task(hold(number, slot)))
        return bool(number % 5)

    for number in range(CROWD):
        slot = work.queue.take_now()
        if slot is None:
            work.queue.begin_in_turn(partial(begin, number))
        elif not begin(number, slot):
            slot.give_back()
    assert begun == [0, 1, 2]
    while len(work.done) < CROWD * 4 // 5:
        await asyncio.gather(*tasks)
    assert begun == list(range(CROWD))
    assert (work.most, work.queue._free) == (2, 2)


@pytest.mark.parametrize("seconds", [0.0, fair_queue.DOWN_AFTER_SECONDS])
async def test_all_who_wait_fail_when_nothing_succeeds_for_long(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(fair_queue, "DOWN_AFTER_SECONDS", seconds)
    work, refusals, begun = Work(1), list[str](), list[bool]()

    def refuse() -> None:
        raise Unavailable("silent")

    async def fail() -> None:
        try:
            async with work.queue.slot():
                await asyncio.sleep(0)
                refuse()
        except Unavailable as refused:
            refusals.append(refused.message)

    failing = [asyncio.create_task(fail()) for _ in range(CROWD)]
    await asyncio.sleep(0)

    def begin(slot: Slot) -> bool:
        begun.append(slot.is_held)
        return False

    work.queue.begin_in_turn(begin)
    await asyncio.gather(*failing)
    assert refusals.count("silent") == (CROWD if seconds else 1)
    assert (len(refusals), begun) == (CROWD, [seconds > 0])
    await work.run(1)
    assert (work.done, work.queue._free) == ([1], 1), "the next one tries again"
