"""Many who return at once: a few pages in each turn of the loop, and only what may match is looked at."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from filters.event import Event
from filters.track import Track
from stream_server.hub import turns
from stream_server.hub.reader import Reader
from stream_server.hub.turns import Turns
from tests.stream_server.hub.world import World
from tests.waiting import eventually

CLIENTS = 100
POSTS = 300
"""More than one page, and a ring that has them all."""


async def pages_a_turn(monkeypatch: pytest.MonkeyPatch, world: World) -> int:
    """The most pages that were matched in one turn of the loop while all clients caught up."""
    loop, pages, turn = asyncio.get_running_loop(), Counter[int](), 0
    matching = Reader._match

    def counted(self: Reader, *given: object) -> object:
        pages[turn] += 1
        return matching(self, *given)  # type: ignore[arg-type]  # whatever it is given

    def count() -> None:
        nonlocal turn
        turn += 1
        counting[0] = loop.call_soon(count)

    monkeypatch.setattr(Reader, "_match", counted)
    counting = [loop.call_soon(count)]
    begin = world.log.entries[0].position
    sockets = [world.open(begin, track=f"word{n},last")[1] for n in range(CLIENTS)]
    for n, socket in enumerate(sockets):
        await socket.tells(*[text for text in (f"word{n}", "last") if n or text == "last"])
    counting[0].cancel()
    assert sum(pages.values()) >= 2 * CLIENTS
    return max(pages.values())


def spoken() -> World:
    """A log of many words; nobody's first one is behind where the clients begin."""
    world = World()
    for n in range(POSTS):
        world.post(f"word{n}")
    world.post("last")
    return world


async def test_a_crowd_that_returns_reads_a_few_pages_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many return, between two turns of the loop only so many pages are matched: the others are heard too."""
    assert await pages_a_turn(monkeypatch, spoken()) <= turns.AT_ONCE


async def test_without_turns_all_would_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with room for all, one turn holds a page of nearly everyone."""
    monkeypatch.setattr(turns, "AT_ONCE", CLIENTS)
    assert await pages_a_turn(monkeypatch, spoken()) > CLIENTS / 2


async def test_a_crowd_goes_live_while_posts_go_on() -> None:
    """The log goes on in every turn of the loop; who has the turn reads to where it ends by then, and is live."""
    world, loop = spoken(), asyncio.get_running_loop()
    streams = [world.open(world.log.entries[0].position, track=f"word{n}")[0] for n in range(CLIENTS)]

    def go_on() -> None:
        world.post("more")
        posting[0] = loop.call_soon(go_on)

    posting = [loop.call_soon(go_on)]
    await eventually(lambda: all(stream.member.group is not None for stream in streams), what="all are live")
    posting[0].cancel()
    assert world.hub.head.n > POSTS + CLIENTS / turns.AT_ONCE, "the log stood still"


async def test_turns_go_round_and_those_who_left_take_none() -> None:
    """First come, first served; a cancelled one is passed over and nobody behind it waits for ever."""
    order, begun = Turns(), []

    async def read(number: int) -> None:
        await order.mine()
        begun.append(number)

    readers = [asyncio.create_task(read(number)) for number in range(20)]
    await asyncio.sleep(0)
    for number in (5, 6, 7, 8, 19):
        readers[number].cancel()
    for reader in readers:
        with suppress(asyncio.CancelledError):
            await reader
    assert begun == [number for number in range(19) if number not in {5, 6, 7, 8}]


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
    await eventually(lambda: stream.member.group is not None, what="it is live")
    assert set(asked) == {"word7"}
