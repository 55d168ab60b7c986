"""The scheduler of pages when many clients return at once."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from filters.event import Event
from filters.track import Track
from stream_server.hub.catchup import reader as catch_up_reader
from stream_server.hub.catchup import scheduler
from stream_server.hub.catchup.reader import CatchUpPage, CatchUpReader
from stream_server.hub.catchup.scheduler import CatchUpScheduler
from tests.stream_server.hub.world import World
from tests.waiting import eventually

CLIENTS = 100
POSTS = 300
"""More than one page, and a ring that has them all."""

SLOW = 1.0
"""Seconds of a page that takes longer than an iteration has."""


class Clock:
    """A clock that a page lets go on by the seconds that it takes."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def read_page(self, seconds: float) -> None:
        self.now += seconds


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
    monkeypatch.setattr(scheduler, "MAX_ITERATION_SECONDS", 1e-9)
    assert await max_pages_per_iteration(monkeypatch, world_with_words()) == 1


def post_in_each_iteration(world: World) -> Callable[[], None]:
    """Let one more post come in each iteration of the loop, until the returned function is called."""
    loop = asyncio.get_running_loop()

    def go_on() -> None:
        world.post("more")
        posting[0] = loop.call_soon(go_on)

    def stop() -> None:
        posting[0].cancel()

    posting = [loop.call_soon(go_on)]
    return stop


async def test_many_returning_clients_become_live_while_posts_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Posts come before and after the turns of an iteration. So the head moves between a client's page and its wake."""
    monkeypatch.setattr(scheduler, "MAX_ITERATION_SECONDS", 1e-9)
    world = world_with_words()
    stops = [post_in_each_iteration(world)]
    begin = world.log.entries[0].position
    streams = [world.open(begin, track=f"word{n}")[0] for n in range(CLIENTS)]
    stops.append(post_in_each_iteration(world))
    await eventually(lambda: all(stream.is_live for stream in streams), what="all are live")
    for stop in stops:
        stop()
    assert world.hub.head.n > POSTS + 1, "the log stood still"


async def served_order(distances: list[int], leaving: tuple[int, ...] = ()) -> list[int]:
    """Return the order in which readers at these distances are served, if an iteration has time for one page."""
    clock, begun = Clock(), list[int]()
    scheduler_under_test = CatchUpScheduler(clock)

    def read(reader: int) -> None:
        begun.append(reader)
        clock.read_page(SLOW)

    scheduler_under_test.read_now(partial(clock.read_page, SLOW))
    readers = [
        asyncio.create_task(scheduler_under_test.read_in_turn(distance, partial(read, reader)))
        for reader, distance in enumerate(distances)
    ]
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
    rest, expected = list(range(1, 40)), [0]  # the first reader does not wait
    while rest:
        expected.append(rest.pop(0 if len(expected) % scheduler.OLDEST_FIRST_EVERY == 1 else -1))
    assert await served_order(list(range(40))) == expected


@pytest.mark.parametrize("pages", [1, 3, 10, 200])
async def test_the_pages_of_an_iteration_depend_on_how_long_they_take(pages: int) -> None:
    clock, begun = Clock(), 0
    waiting = CatchUpScheduler(clock)

    def read() -> None:
        nonlocal begun
        begun += 1
        clock.read_page(1.001 * scheduler.MAX_ITERATION_SECONDS / pages)

    readers = [asyncio.create_task(waiting.read_in_turn(0, read)) for _ in range(4 * pages)]
    for iteration in range(4):
        await asyncio.sleep(0)
        assert begun == pages * (iteration + 1)
    await asyncio.gather(*readers)


async def test_the_error_of_a_page_reaches_its_reader_only() -> None:
    clock = Clock()
    waiting = CatchUpScheduler(clock)
    waiting.read_now(partial(clock.read_page, SLOW))
    numbers = iter((1, 2, 3))

    def read() -> int:
        clock.read_page(SLOW)
        number = next(numbers)
        if number == 2:
            raise ValueError(number)
        return number

    readers = [waiting.read_in_turn(0, read) for _ in range(3)]
    first, second, third = await asyncio.gather(*readers, return_exceptions=True)
    assert (first, type(second), third) == (1, ValueError, 3)


async def test_served_waiters_are_forgotten() -> None:
    clock, most = Clock(), 0
    waiting = CatchUpScheduler(clock)

    async def read() -> None:
        for n in range(200):
            await waiting.read_in_turn(n, partial(clock.read_page, SLOW))

    readers = [asyncio.create_task(read()) for _ in range(20)]
    while not all(reader.done() for reader in readers):
        await asyncio.sleep(0)  # looks at the queue in each iteration of the loop
        most = max(most, len(waiting._by_distance))
    assert 10 <= most <= 3 * (20 + scheduler.MAX_FINISHED_WAITERS)


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
    await eventually(lambda: stream.is_live, what="it is live")
    assert set(asked) == {"word7"}


async def test_a_process_that_waits_for_a_core_sends_several_entries_in_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock, each of these entries would end a page. Then a crowd on a busy machine would never catch up."""
    matches, world, sizes = Track.matches, world_with_words(), list[int]()
    matching = CatchUpReader._match_entries

    def slow(self: Track, event: Event) -> bool:
        time.sleep(1.1 * catch_up_reader.MAX_PAGE_SECONDS)  # another process has the core
        return matches(self, event)

    def counted(self: CatchUpReader, *given: Any) -> CatchUpPage:
        page = matching(self, *given)
        sizes.append(len(page.deliveries))
        return page

    monkeypatch.setattr(Track, "matches", slow)
    monkeypatch.setattr(CatchUpReader, "_match_entries", counted)
    words = [f"word{n}" for n in range(1, 10)]
    _, socket = world.open(world.log.entries[0].position, track=",".join(words))
    await socket.expect_texts(*words)
    assert max(sizes) > 1
