"""Each stream of a random history receives exactly what its user may see."""

import asyncio
from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.catchup.reader import CatchUpPage
from stream_server.hub.client import Client
from tests.stream_server.hub.visibility.model import HistoryEntry, State, StreamModel, received_events
from tests.stream_server.hub.visibility.random_history import RandomHistory
from tests.stream_server.hub.world import World
from tests.tiers import seeds
from tests.waiting import eventually


@pytest.mark.parametrize("seed", seeds(60, first_tier=5, second_tier=12))
async def test_each_stream_receives_exactly_what_its_user_may_see(world: World, seed: int) -> None:
    play = RandomHistory(world, seed)
    for number in range(400):
        play.step()
        if number % 20 == 5:
            await play.open_stream()
    assert play.check() > 100
    assert world.hub.counters.malformed == 0


@dataclass
class Scan:
    """The state and the head when an entry was last read for a stream that could not receive it live."""

    state: State
    head_n: int


@dataclass
class SlowStreamModel(StreamModel):
    """A stream whose socket is full at times.

    ``scans`` are the reads of each entry that it could not receive live. ``received`` has kind and id of what it got.
    """

    scans: dict[int, list[Scan]] = field(default_factory=dict, repr=False)
    received: set[tuple[str, str]] = field(default_factory=set, repr=False)

    def scanned_n(self, h: HistoryEntry) -> int | None:
        """Return the head of the last read."""
        return self.scans[h.n][-1].head_n if h.n in self.scans else None

    def scanned(self, h: HistoryEntry) -> State:
        """Return the state of the last read."""
        return self.scans[h.n][-1].state

    def expects_delete(self, h: HistoryEntry, post: HistoryEntry, history: list[HistoryEntry]) -> bool | None:
        """The delete of what was received must arrive. Other deletes may, if the post was ever visible.

        So may the end of what the stream was about to send when its socket was full, though it does not match any more:
        the stream remembers it.
        """
        expected = super().expects_delete(h, post, history)
        if expected is None and (h.edits is not None or self.graph):
            return False if any(self._was_tried(one) for one in (post, *post.later) if one.n <= h.n) else None
        return False if expected and not self.viewer_independent else expected

    def _was_tried(self, one: HistoryEntry) -> bool:
        """Whether the stream may have been about to send the post or the edit, live or after an earlier read."""
        states = [one.before, *(scan.state for scan in self.scans.get(one.n, ()))]
        return one.n > self.start_n and any(self.sees(one, state) != "not" for state in states)

    def was_sent(self, post: HistoryEntry) -> bool:
        """Whether the stream received it."""
        return (post.kind, post.about) in self.received


def record_scans(world: World, play: RandomHistory) -> dict[Client, dict[int, list[Scan]]]:
    """Record the scans of each entry, by client and number."""
    scans: dict[Client, dict[int, list[Scan]]] = defaultdict(lambda: defaultdict(list))
    match = world.hub.catchup_reader._match_entries

    def page(client: Client, entries: list[Entry], position: Position, *how: Any) -> CatchUpPage:
        made = match(client, entries, position, *how)
        scan = Scan(deepcopy(play.state), world.hub.head.n)
        for n in range(position.n + 1, made.end_position.n + 1):
            scans[client][n].append(scan)
        return made

    world.hub.catchup_reader._match_entries = page  # type: ignore[method-assign,assignment]  # looks on
    return scans


async def block_sockets(play: RandomHistory) -> None:
    """Block and unblock sockets at random, and run the loop a few times."""
    for _, socket, _ in play.listeners:
        chance = play.source.random()
        if chance < 0.06:
            socket.block()
        elif chance < 0.16:
            socket.unblock()
    for _ in range(play.source.choice([0, 0, 1, 2, 5])):
        await asyncio.sleep(0)  # a random number of iterations between two moves


async def until_all_live(play: RandomHistory) -> int:
    """Unblock all sockets and wait until their streams are live. Returns the number of entries read again."""
    for _, socket, _ in play.listeners:
        socket.unblock()
    await eventually(lambda: all(stream.is_live for _, _, stream in play.listeners), what="live again")
    again = 0
    for ours, socket, _ in play.listeners:
        slow = cast("SlowStreamModel", ours)
        slow.received = {(kind, about) for kind, about, *_ in received_events(socket.messages())}
        again += sum(n > slow.opened_n for n in slow.scans)
    return again


@pytest.mark.parametrize("seed", seeds(32, first_tier=2, second_tier=8))
async def test_a_client_that_reads_late_receives_what_its_user_may_see_by_then(tiny_buffer: World, seed: int) -> None:
    play = RandomHistory(tiny_buffer, seed, SlowStreamModel)
    scans = record_scans(tiny_buffer, play)
    for number in range(400):
        play.step()
        await block_sockets(play)
        if number % 20 == 5:
            await play.open_stream()
            ours, _, stream = play.listeners[-1]
            cast("SlowStreamModel", ours).scans = scans[stream]
    assert await until_all_live(play) > 0
    assert play.check() > 100
    assert (tiny_buffer.hub.counters.malformed, tiny_buffer.hub.background_tasks.failures) == (0, 0)
    assert tiny_buffer.hub.counters.slow_demotions > 0
