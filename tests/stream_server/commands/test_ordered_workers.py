"""Workers that keep the order of each key."""

import asyncio

import pytest

from stream_server.commands.replay import MAX_WAITING_ITEMS, ordered_workers


async def test_a_full_queue_blocks_the_producer() -> None:
    gate, taken = asyncio.Event(), 0

    async def work(_: int) -> None:
        await gate.wait()

    async with ordered_workers(1, work) as put:
        for number in range(MAX_WAITING_ITEMS + 1):
            await put("a", number)
            await asyncio.sleep(0)  # the worker takes the item
            taken += 1
        blocked = asyncio.ensure_future(put("a", 99))
        for _ in range(10):
            await asyncio.sleep(0)  # iterations in which the call could wrongly return
        assert not blocked.done()
        gate.set()
        await blocked
    assert taken == MAX_WAITING_ITEMS + 1


async def test_an_error_of_a_worker_ends_all_workers() -> None:
    async def work(_: int) -> None:
        raise ZeroDivisionError

    async def run() -> None:
        async with ordered_workers(2, work) as put:
            for number in range(20):
                await put(str(number), number)

    with pytest.raises(ExceptionGroup) as failed:
        await run()
    assert failed.group_contains(ZeroDivisionError)
