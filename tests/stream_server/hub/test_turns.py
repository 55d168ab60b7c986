"""Many who return at once: a few pages in each turn of the loop, and who is nearest to the head is done with first."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from filters.event import Event
from filters.track import Track
from stream_server.hub.catchup import scheduler
from stream_server.hub.catchup.reader import CatchUpReader
from stream_server.hub.catchup.scheduler import CatchUpScheduler
from tests.stream_server.hub.world import World
from tests.waiting import eventually

CLIENTS = 100
POSTS = 300
"""More than one page, and a ring that has them all."""

SLOW = 1.0
"""So many seconds a page are told, so that each turn has the fewest."""


async def pages_a_turn(monkeypatch: pytest.MonkeyPatch, world: World) -> int:
    """The most pages that were matched in one turn of the loop while all clients caught up."""
    loop, pages, turn = asyncio.get_running_loop(), Counter[int](), 0
    matching = CatchUpReader._match_entries

    def counted(self: CatchUpReader, *given: object) -> object:
        pages[turn] += 1
        return matching(self, *given)  # type: ignore[arg-type]  # whatever it is given

    def count() -> None:
        nonlocal turn
        turn += 1
        counting[0] = loop.call_soon(count)

    monkeypatch.setattr(CatchUpReader, "_match_entries", counted)
    world.hub.catchup_reader._scheduler.record_page(SLOW * scheduler.MAX_PAGES_PER_ITERATION)
    counting = [loop.call_soon(count)]
    begin = world.log.entries[0].position
    sockets = [world.open(begin, track=f"word{n},last")[1] for n in range(CLIENTS)]
    for n, socket in enumerate(sockets):
        await socket.tells(*[text for text in (f"word{n}", "last") if n or text == "last"])
    counting[0].cancel()
    assert sum(pages.values()) >= CLIENTS
    return max(pages.values())


def spoken() -> World:
    """A log of many words; nobody's first one is behind where the clients begin."""
    world = World()
    for n in range(POSTS):
        world.post(f"word{n}")
    world.post("last")
    return world


async def test_a_crowd_that_returns_reads_a_few_pages_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many return, between two turns of the loop only so many pages are matched: the others are heard too.

    These take long; what is quickly done is many a turn, and bounded as well.
    """
    assert await pages_a_turn(monkeypatch, spoken()) <= scheduler.MIN_PAGES_PER_ITERATION


async def test_without_turns_all_would_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with room for all, one turn holds a page of nearly everyone."""
    monkeypatch.setattr(scheduler, "MIN_PAGES_PER_ITERATION", CLIENTS)
    assert await pages_a_turn(monkeypatch, spoken()) > CLIENTS / 2


async def test_a_crowd_goes_live_while_posts_go_on() -> None:
    """The log goes on in every turn of the loop; who has the turn reads to where it ends by then, and is live."""
    world, loop = spoken(), asyncio.get_running_loop()
    streams = [world.open(world.log.entries[0].position, track=f"word{n}")[0] for n in range(CLIENTS)]

    def go_on() -> None:
        world.post("more")
        posting[0] = loop.call_soon(go_on)

    posting = [loop.call_soon(go_on)]
    await eventually(lambda: all(stream.client in world.hub.live for stream in streams), what="all are live")
    posting[0].cancel()
    assert world.hub.head.n > POSTS + CLIENTS / scheduler.MAX_PAGES_PER_ITERATION, "the log stood still"


async def order(places: list[int], leaving: tuple[int, ...] = ()) -> list[int]:
    """In which order readers at these places get their turns, where each turn of the loop has few."""
    all_turns, begun = CatchUpScheduler(), list[int]()
    all_turns.record_page(SLOW * scheduler.MAX_PAGES_PER_ITERATION)

    async def read(reader: int) -> None:
        await all_turns.wait_turn(places[reader])
        begun.append(reader)

    readers = [asyncio.create_task(read(reader)) for reader in range(len(places))]
    await asyncio.sleep(0)
    for reader in leaving:
        readers[reader].cancel()
    for task in readers:
        with suppress(asyncio.CancelledError):
            await task
    return begun


async def test_turns_go_round_and_those_who_left_take_none() -> None:
    """All stand at one place: first come, first served; a cancelled one is passed over, nobody waits for ever."""
    leaving = (5, 6, 7, 8, 19)
    assert await order([0] * 20, leaving) == [reader for reader in range(20) if reader not in leaving]


async def test_who_is_nearest_to_the_head_comes_first_and_who_waits_longest_in_between() -> None:
    """Three of four by their place, the fourth by its patience: nobody who is far behind waits for all that come."""
    rest, expected = list(range(40)), list[int]()
    while rest:
        few = min(scheduler.MIN_PAGES_PER_ITERATION, len(rest))
        expected += [rest.pop(0 if turn % scheduler.OLDEST_FIRST_EVERY == 0 else -1) for turn in range(few)]
    assert await order(list(range(40))) == expected


async def test_quick_pages_are_many_a_turn_and_slow_ones_few() -> None:
    """As many as take a hundredth of a second by what they took of late, within bounds."""
    waiting = CatchUpScheduler()

    async def in_one_turn(seconds: float) -> int:
        for _ in range(20 * scheduler.MAX_PAGES_PER_ITERATION):
            waiting.record_page(seconds)
        readers = [asyncio.create_task(waiting.wait_turn(0)) for _ in range(4 * scheduler.MAX_PAGES_PER_ITERATION)]
        await asyncio.sleep(0)  # all have come
        await asyncio.sleep(0)  # those who were let in at once were of the turn before
        before = sum(reader.done() for reader in readers)
        await asyncio.sleep(0)
        given = sum(reader.done() for reader in readers) - before
        await asyncio.gather(*readers)
        return given

    assert await in_one_turn(scheduler.MAX_ITERATION_SECONDS / 10) in {9, 10}
    assert await in_one_turn(0.0) == scheduler.MAX_PAGES_PER_ITERATION
    assert await in_one_turn(1.0) == scheduler.MIN_PAGES_PER_ITERATION


async def test_what_suddenly_takes_long_ends_the_turn() -> None:
    """After many quick ones: whoever comes then waits for the next turn of the loop."""
    waiting = CatchUpScheduler()
    await waiting.wait_turn(0)
    await asyncio.sleep(0)  # quick ones so far: this turn has room for many
    for _ in range(scheduler.MAX_PAGES_PER_ITERATION // 2):
        with pytest.raises(StopIteration):
            waiting.wait_turn(0).send(None)
    waiting.record_page(scheduler.MAX_ITERATION_SECONDS)
    late = waiting.wait_turn(0)
    assert late.send(None) is not None, "it has its turn at once"
    late.close()


async def test_who_was_served_is_not_remembered() -> None:
    """Where somebody always waits, what is held is bounded by how many do."""
    waiting, most = CatchUpScheduler(), 0
    waiting.record_page(SLOW)

    async def read() -> None:
        for n in range(200):
            await waiting.wait_turn(n)
            waiting.record_page(SLOW)

    readers = [asyncio.create_task(read()) for _ in range(20)]
    while not all(reader.done() for reader in readers):
        await asyncio.sleep(0)
        most = max(most, len(waiting._by_distance))
    assert 20 <= most <= 3 * (20 + scheduler.MAX_FINISHED_WAITERS)


async def test_a_returning_client_is_asked_only_about_what_has_a_key_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 300 posts one has its word: its filter is asked about that one, as the index would."""
    asked: list[str] = []
    matches = Track.matches

    def noted(self: Track, event: Event) -> bool:
        asked.append(event.text)
        return matches(self, event)

    monkeypatch.setattr(Track, "matches", noted)
    world = spoken()
    stream, socket = world.open(world.log.entries[0].position, track="word7")
    await socket.tells("word7")
    await eventually(lambda: stream.client in world.hub.live, what="it is live")
    assert set(asked) == {"word7"}
