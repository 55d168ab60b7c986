"""The processor time of users and addresses, by clocks that stand still."""

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from stream_server.errors import RateLimited
from stream_server.runtime.event_loop import WorkThread
from stream_server.web.limits.processor_time import ADDRESS_SHARE, MAX_AHEAD_SECONDS, SLICE_SECONDS, USER_SHARE, Payer
from tests.stream_server.web.limits.clocks import Clocks
from tests.waiting import eventually

PIECE = 0.005
"""Seconds of processor time of one message."""

OF_USER, OF_ADDRESS = (round(MAX_AHEAD_SECONDS * share / PIECE) for share in (USER_SHARE, ADDRESS_SHARE))
"""Pieces that a user and an address may take at once."""


@pytest.fixture
def thread() -> Iterator[WorkThread]:
    made = WorkThread("test", max_pending=10, busy_message="busy")
    yield made
    made.close()


async def _take(payers: list[Payer], clocks: Clocks) -> int:
    """Take pieces by all payers in turn until all are over, also in a new iteration of the loop. Return how many."""
    taken = 0
    while True:
        ready = [payer for payer in payers if not payer.is_over]
        if not ready:
            return taken
        for payer in ready:
            if not payer.is_over:
                payer.run(lambda: clocks.work(PIECE))
                taken += 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)


@pytest.mark.parametrize("sockets", [1, 31])
async def test_a_user_gets_as_much_by_many_sockets_as_by_one(sockets: int) -> None:
    """Also from many addresses. Another user of one of them is not hurt."""
    clocks = Clocks()
    time = clocks.processor_time()
    payers = [time.payer(f"192.0.2.{nth}", "ann") for nth in range(sockets)]
    assert OF_USER <= await _take(payers, clocks) <= OF_USER + 1
    assert not time.payer("192.0.2.0", "bob").is_over
    clocks.now += 10 * PIECE / USER_SHARE
    await eventually(lambda: not payers[0].is_over)
    assert 9 <= await _take(payers, clocks) <= 11


async def test_an_address_gets_as_much_for_many_users_as_it_gets() -> None:
    clocks = Clocks()
    time = clocks.processor_time()
    payers = [time.payer("192.0.2.1", f"user{nth}") for nth in range(10)]
    assert OF_ADDRESS <= await _take(payers, clocks) <= OF_ADDRESS + 1
    assert time.payer("192.0.2.1").is_over, "who has not proved to be a user pays as the address"
    assert not time.payer("192.0.2.2", "user1").is_over


async def test_a_new_socket_does_not_pay_the_debt() -> None:
    """A client that closes its sockets and opens others goes on with the same account."""
    clocks = Clocks()
    time = clocks.processor_time()
    assert await _take([time.payer("192.0.2.1", "ann")], clocks) >= OF_USER
    assert time.payer("192.0.2.1", "ann").is_over
    clocks.now += 2 * MAX_AHEAD_SECONDS
    await eventually(lambda: not time.payer("192.0.2.1", "ann").is_over)


async def test_strangers_do_not_use_up_the_share_of_an_address() -> None:
    """Those without a token are together one user, so that something is left for a user who has one."""
    clocks = Clocks()
    time = clocks.processor_time()
    assert OF_USER <= await _take([time.payer("192.0.2.1") for _ in range(30)], clocks) <= OF_USER + 1
    assert not time.payer("192.0.2.1", "ann").is_over


@pytest.mark.parametrize("others", [[""], ["bob"], ["", "bob", "cid", "dan"]], ids=str)
async def test_the_users_of_an_address_take_turns(others: list[str]) -> None:
    """A request waits for one piece of each other user, however many sockets of theirs wait, and for how long."""
    clocks, taken = Clocks(), list[str]()
    time = clocks.processor_time(lambda: False)

    def go_on(user: str, payer: Payer) -> None:
        taken.append(user)
        payer.run(lambda: clocks.work(PIECE))
        again = partial(go_on, user, payer)
        payer.wait(again)

    for user in others * 30:
        payer = time.payer("192.0.2.1", user)
        payer.charge(SLICE_SECONDS)
        payer.wait(partial(go_on, user, payer))
    for _ in range(10):
        await asyncio.sleep(0)
    before = len(taken)
    assert await time.payer("192.0.2.1", "ann").run_in_turn(lambda: len(taken)) <= before + len(others) + 1
    assert 8 <= before <= 10, "one piece in an iteration of the loop"
    for user in others:
        assert taken[:before].count(user) >= before // len(others) - 1


async def test_requests_that_come_together_are_parsed_one_after_another() -> None:
    """The second one sees what the first one took. Each gets its own result or error, in the order of arrival."""
    clocks, parsed = Clocks(), list[int]()
    payer = clocks.processor_time(lambda: False).payer("192.0.2.1", "ann")

    def parse(nth: int) -> int:
        clocks.work(PIECE)
        parsed.append(nth)
        return 60 // nth

    tasks = [asyncio.ensure_future(payer.run_in_turn(partial(parse, nth))) for nth in range(6)]
    seen = [0]
    while len(parsed) < len(tasks):
        await asyncio.sleep(0)
        seen.append(len(parsed))
    assert max(later - earlier for earlier, later in pairwise(seen)) == 1
    assert parsed == [0, 1, 2, 3, 4, 5]
    failed, *results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(failed, ZeroDivisionError)
    assert results == [60, 30, 20, 15, 12]


async def test_those_who_wait_go_on_in_their_order() -> None:
    """Each takes a piece, so one goes on in an iteration of the loop. One who left is forgotten."""
    clocks, went = Clocks(), list[int]()
    payer = clocks.processor_time().payer("192.0.2.1", "ann")

    def go(nth: int) -> None:
        went.append(nth)
        payer.charge(SLICE_SECONDS)

    turns = [partial(go, nth) for nth in range(5)]
    payer.charge(SLICE_SECONDS)
    for work in turns:
        payer.wait(work)
    payer.leave(turns[2])
    assert went == []
    seen = []
    while len(went) < 4:
        await asyncio.sleep(0)
        seen.append(len(went))
    assert went == [0, 1, 3, 4]
    assert max(later - earlier for earlier, later in zip([0, *seen], seen, strict=False)) == 1


async def test_without_limits_only_the_slices_hold() -> None:
    """A later reload that turns the limits on finds no debt."""
    clocks, switch = Clocks(), [False]
    payer = clocks.processor_time(lambda: switch[0]).payer("192.0.2.1", "ann")
    for _ in range(2 * OF_ADDRESS):
        payer.run(lambda: clocks.work(PIECE))
        assert payer.is_over
        await payer.run_in_turn(lambda: None)
    switch[0] = True
    await payer.run_in_turn(lambda: None)


async def test_the_steps_of_a_task_are_charged_and_its_waiting_is_not() -> None:
    clocks = Clocks()
    payer = clocks.processor_time().payer("192.0.2.1", "ann")
    free = asyncio.Event()

    async def work() -> str:
        clocks.work(PIECE)
        await free.wait()
        clocks.work(PIECE)
        return "done"

    async def cancelled() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            clocks.work(PIECE)

    task = asyncio.ensure_future(payer.run_steps(work()))
    await asyncio.sleep(0)
    clocks.work(1000.0)  # of others
    free.set()
    assert await task == "done"
    ending = asyncio.ensure_future(payer.run_steps(cancelled()))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait([ending])
    assert ending.cancelled()
    await asyncio.sleep(0)
    assert OF_USER - 3 <= await _take([payer], clocks) <= OF_USER - 2


async def test_a_request_waits_for_its_turn_and_is_refused_if_that_takes_long(thread: WorkThread) -> None:
    """The time of a thread is charged as that of the event loop."""
    clocks = Clocks()
    payer = clocks.processor_time().payer("192.0.2.1", "ann")
    await payer.run_in(thread, lambda: clocks.work((MAX_AHEAD_SECONDS + 1) * USER_SHARE))
    waiting = asyncio.ensure_future(payer.run_in_turn(lambda: clocks.cpu))
    await asyncio.sleep(0)
    assert not waiting.done()
    clocks.now += 2
    assert await waiting == clocks.cpu

    def fail() -> None:
        clocks.work(100 * USER_SHARE)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await payer.run_in(thread, fail)
    with pytest.raises(RateLimited) as refused:
        await payer.run_in_turn(fail)
    assert refused.value.limit == "processor_time"
    assert refused.value.retry_after == pytest.approx(99.0)
