"""The states of an opening: whoever waits for Redis holds a slot, and no slot is lost."""

import asyncio
import random
from collections.abc import Coroutine
from contextlib import suppress

import pytest

from stream_server.errors import Unavailable
from stream_server.runtime.event_loop import Ended, run_to_wait
from stream_server.runtime.fair_queue import FairQueue, Slot
from stream_server.web.http.opening import Opening, OpeningState

SLOTS = 3


async def begin_at_once(opening: Opening) -> Coroutine[None, None, None]:
    """Run an opening up to its first wait, as the front door does. Return the rest of it."""
    rest = opening.hold_slot()
    assert run_to_wait(rest) is None
    assert (opening.state, opening.slot) == (OpeningState.QUEUED, None)
    return rest


async def test_a_stream_goes_on_in_a_task_with_the_slot_that_it_was_given() -> None:
    openings = FairQueue(1, "too many")
    opening = Opening()
    rest = await begin_at_once(opening)
    slot = openings.take_now()
    assert slot is not None
    opening.resume(slot)
    assert opening.state is OpeningState.WITHOUT_SLOT
    await asyncio.create_task(rest)
    assert (opening.state, openings.take_now()) == (OpeningState.WITH_SLOT, None)
    opening.give_back()
    assert opening.state is OpeningState.WITHOUT_SLOT
    assert run_to_wait(opening.hold_slot()) is Ended.ENDED
    assert run_to_wait(opening.hold_slot()) is Ended.ENDED
    assert (opening.state, openings.take_now()) == (OpeningState.WITH_SLOT, None)


async def test_a_stream_whose_slot_is_refused_fails_where_it_waits() -> None:
    openings = FairQueue(0, "too many", max_wait_seconds=0)
    opening = Opening()
    rest = await begin_at_once(opening)
    resumed = asyncio.Event()

    def resume(slot: Slot) -> bool:
        opening.resume(slot)
        resumed.set()
        return True

    openings.begin_in_turn(resume)
    await resumed.wait()
    with pytest.raises(Unavailable):
        await asyncio.create_task(rest)
    opening.give_back()
    assert opening.state is OpeningState.WITHOUT_SLOT


async def test_a_request_with_a_body_takes_no_slot_before_its_body_has_come() -> None:
    openings = FairQueue(1, "too many")
    opening = Opening(OpeningState.FREE, openings.slot())
    await opening.hold_slot()
    async with opening.given_back():
        taken = openings.take_now()
        assert taken is not None, "a slow sender holds up nobody"
        await opening.hold_slot()
        taken.give_back()
    assert (opening.state, openings.take_now()) == (OpeningState.WITH_SLOT, None)


async def test_at_most_as_many_wait_for_redis_as_there_are_slots() -> None:
    """Openings hold, give back, end and are cancelled in every order."""
    openings, holders, most = FairQueue(SLOTS, "too many"), set[int](), 0

    async def run(number: int, chance: random.Random) -> None:
        nonlocal most
        opening = Opening(OpeningState.WITHOUT_SLOT, openings.slot())
        try:
            for _ in range(chance.randrange(6)):
                await opening.hold_slot()
                assert opening.state is OpeningState.WITH_SLOT
                holders.add(number)
                most = max(most, len(holders))
                assert len(holders) <= SLOTS
                await asyncio.sleep(0)
                holders.discard(number)
                if chance.random() < 0.5:
                    opening.give_back()
                    await asyncio.sleep(0)
                else:
                    holders.add(number)  # it still has its slot
        finally:
            holders.discard(number)
            opening.give_back(chance.choice((None, ValueError())))

    for seed in range(100):
        chance = random.Random(seed)
        tasks = [asyncio.create_task(run(number, chance)) for number in range(8)]
        for task in chance.sample(tasks, 2):
            await asyncio.sleep(0)
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
    assert most == SLOTS
    slots = [openings.take_now() for _ in range(SLOTS + 1)]
    assert [slot is not None for slot in slots] == [True] * SLOTS + [False]
