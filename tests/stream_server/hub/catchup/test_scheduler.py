"""The scheduler of pages when many clients return at once."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from filters.event import Event
from filters.track import Track
from stream_server.hub.catchup import reader as catch_up_reader
from stream_server.hub.catchup import scheduler
from stream_server.hub.catchup.reader import CatchUpReader
from stream_server.hub.catchup.scheduler import CatchUpScheduler
from tests.stream_server.hub.world import World
from tests.waiting import eventually

CLIENTS = 100
POSTS = 300
"""More than one page, and a ring that has them all."""

SLOW = 1.0
"""So many seconds a page are told, so that each iteration has the fewest."""


async def max_pages_per_iteration(monkeypatch: pytest.MonkeyPatch, world: World) -> int:
    """Return the most pages matched in one iteration of the loop while all clients caught up."""
    loop, pages, iteration = asyncio.get_running_loop(), Counter[int](), 0
    matching = CatchUpReader._match_entries

    def counted(self: CatchUpReader, *given: object) -> object:
        pages[iteration] += 1
        return matching(self, *given)  # type: ignore[arg-type]  # whatever it is given

    def count() -> None:
        nonlocal iteration
        iteration += 1
        counting[0] = loop.call_soon(count)

    monkeypatch.setattr(CatchUpReader, "_match_entries", counted)
    monkeypatch.setattr(catch_up_reader, "MAX_PAGE_SECONDS", 60.0)  # a busy machine would cut pages
    world.hub.catchup_reader._scheduler.record_page(SLOW * scheduler.MAX_PAGES_PER_ITERATION)
    counting = [loop.call_soon(count)]
    begin = world.log.entries[0].position
    sockets = [world.open(begin, track=f"word{n},last")[1] for n in range(CLIENTS)]
    for n, socket in enumerate(sockets):
        await socket.expect_texts(*[text for text in (f"word{n}", "last") if n or text == "last"])
    counting[0].cancel()
    assert sum(pages.values()) >= CLIENTS
    return max(pages.values())


def world_with_words() -> World:
    """Return a world whose log has a word for each client."""
    world = World()
    for n in range(POSTS):
        world.post(f"word{n}")
    world.post("last")
    return world


async def test_returning_clients_read_a_few_pages_in_an_iteration_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await max_pages_per_iteration(monkeypatch, world_with_words()) <= scheduler.MIN_PAGES_PER_ITERATION


async def test_without_the_limit_most_clients_would_read_in_one_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above."""
    monkeypatch.setattr(scheduler, "MIN_PAGES_PER_ITERATION", CLIENTS)
    assert await max_pages_per_iteration(monkeypatch, world_with_words()) > CLIENTS / 2


async def test_many_returning_clients_become_live_while_posts_continue() -> None:
    world, loop = world_with_words(), asyncio.get_running_loop()
    streams = [world.open(world.log.entries[0].position, track=f"word{n}")[0] for n in range(CLIENTS)]

    def go_on() -> None:
        world.post("more")
        posting[0] = loop.call_soon(go_on)

    posting = [loop.call_soon(go_on)]
    await eventually(lambda: all(stream.client in world.hub.live for stream in streams), what="all are live")
    posting[0].cancel()
    assert world.hub.head.n > POSTS + CLIENTS / scheduler.MAX_PAGES_PER_ITERATION, "the log stood still"


async def served_order(distances: list[int], leaving: tuple[int, ...] = ()) -> list[int]:
    """Return the order in which readers at these distances are served, if an iteration serves few."""
    scheduler_under_test, begun = CatchUpScheduler(), list[int]()
    scheduler_under_test.record_page(SLOW * scheduler.MAX_PAGES_PER_ITERATION)

    async def read(reader: int) -> None:
        await scheduler_under_test.wait_turn(distances[reader])
        begun.append(reader)

    readers = [asyncio.create_task(read(reader)) for reader in range(len(distances))]
    await asyncio.sleep(0)  # each reader starts and waits for its turn
    for reader in leaving:
        readers[reader].cancel()
    for task in readers:
        with suppress(asyncio.CancelledError):
            await task
    return begun


async def test_waiters_are_served_in_order_and_cancelled_waiters_are_skipped() -> None:
    leaving = (5, 6, 7, 8, 19)
    assert await served_order([0] * 20, leaving) == [reader for reader in range(20) if reader not in leaving]


async def test_the_client_nearest_to_the_head_reads_first_and_the_longest_waiter_in_between() -> None:
    rest, expected = list(range(40)), list[int]()
    while rest:
        few = min(scheduler.MIN_PAGES_PER_ITERATION, len(rest))
        expected += [rest.pop(0 if iteration % scheduler.OLDEST_FIRST_EVERY == 0 else -1) for iteration in range(few)]
    assert await served_order(list(range(40))) == expected


async def test_the_pages_of_an_iteration_depend_on_how_long_pages_take() -> None:
    waiting = CatchUpScheduler()

    async def in_one_turn(seconds: float) -> int:
        for _ in range(20 * scheduler.MAX_PAGES_PER_ITERATION):
            waiting.record_page(seconds)
        readers = [asyncio.create_task(waiting.wait_turn(0)) for _ in range(4 * scheduler.MAX_PAGES_PER_ITERATION)]
        await asyncio.sleep(0)  # all have come
        await asyncio.sleep(0)  # those who were let in at once were of the iteration before
        before = sum(reader.done() for reader in readers)
        await asyncio.sleep(0)  # the one iteration that the test measures
        given = sum(reader.done() for reader in readers) - before
        await asyncio.gather(*readers)
        return given

    assert await in_one_turn(scheduler.MAX_ITERATION_SECONDS / 10) in {9, 10}
    assert await in_one_turn(0.0) == scheduler.MAX_PAGES_PER_ITERATION
    assert await in_one_turn(1.0) == scheduler.MIN_PAGES_PER_ITERATION


async def test_a_page_that_takes_long_ends_the_iteration() -> None:
    waiting = CatchUpScheduler()
    await waiting.wait_turn(0)
    await asyncio.sleep(0)  # quick ones so far: this iteration has room for many
    for _ in range(scheduler.MAX_PAGES_PER_ITERATION // 2):
        with pytest.raises(StopIteration):
            waiting.wait_turn(0).send(None)
    waiting.record_page(scheduler.MAX_ITERATION_SECONDS)
    late = waiting.wait_turn(0)
    assert late.send(None) is not None, "it has its iteration at once"
    late.close()


async def test_served_waiters_are_forgotten() -> None:
    waiting, most = CatchUpScheduler(), 0
    waiting.record_page(SLOW)

    async def read() -> None:
        for n in range(200):
            await waiting.wait_turn(n)
            waiting.record_page(SLOW)

    readers = [asyncio.create_task(read()) for _ in range(20)]
    while not all(reader.done() for reader in readers):
        await asyncio.sleep(0)  # looks at the queue in each iteration of the loop
        most = max(most, len(waiting._by_distance))
    assert 20 <= most <= 3 * (20 + scheduler.MAX_FINISHED_WAITERS)


async def test_the_filter_of_a_returning_client_sees_entries_with_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    matches = Track.matches

    def noted(self: Track, event: Event) -> bool:
        asked.append(event.text)
        return matches(self, event)

    monkeypatch.setattr(Track, "matches", noted)
    world = world_with_words()
    stream, socket = world.open(world.log.entries[0].position, track="word7")
    await socket.expect_texts("word7")
    await eventually(lambda: stream.client in world.hub.live, what="it is live")
    assert set(asked) == {"word7"}
