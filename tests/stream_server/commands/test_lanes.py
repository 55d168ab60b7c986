"""Work side by side, in the order of each key."""

import asyncio

import pytest

from stream_server.commands.ordered_workers import MAX_WAITING_ITEMS, OrderedWorkers


async def test_one_key_keeps_its_order() -> None:
    """However long each piece takes, those of one key end in the order in which they came."""
    done: dict[int, list[int]] = {}
    running = most = 0

    async def work(item: tuple[int, int]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(item[1] % 3):
            await asyncio.sleep(0)
        done.setdefault(item[0], []).append(item[1])
        running -= 1

    async with OrderedWorkers(4, work) as lanes:
        for number in range(200):
            await lanes.put(str(number % 7), (number % 7, number))
    assert all(numbers == sorted(numbers) for numbers in done.values())
    assert sum(map(len, done.values())) == 200
    assert 1 < most <= 4


async def test_a_slow_worker_holds_the_reader_back() -> None:
    """What waits in a lane is bounded: the reader stops when its lane is full."""
    gate, taken = asyncio.Event(), 0

    async def work(_: int) -> None:
        await gate.wait()

    async with OrderedWorkers(1, work) as lanes:
        for number in range(MAX_WAITING_ITEMS + 1):
            await lanes.put("a", number)
            await asyncio.sleep(0)
            taken += 1
        blocked = asyncio.ensure_future(lanes.put("a", 99))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not blocked.done()
        gate.set()
        await blocked
    assert taken == MAX_WAITING_ITEMS + 1


async def test_an_error_of_the_work_ends_all() -> None:
    """A piece that raises ends the lanes with its error, and no worker is left behind."""

    async def work(_: int) -> None:
        raise ZeroDivisionError

    async def run() -> None:
        async with OrderedWorkers(2, work) as lanes:
            for number in range(20):
                await lanes.put(str(number), number)

    with pytest.raises(ExceptionGroup) as failed:
        await run()
    assert failed.group_contains(ZeroDivisionError)
