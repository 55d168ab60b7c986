"""Clients that stop reading while permissions change: what they read later goes by today, and nothing comes twice."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import cast

import pytest

from stream_server.events.position import Position
from stream_server.hub.catchup.reader import CatchUpPage
from stream_server.hub.client import Client
from tests.stream_server.hub.oracle import Happening, Listener, State, arrived
from tests.stream_server.hub.play import Play
from tests.stream_server.hub.world import World
from tests.tiers import sample
from tests.waiting import eventually


@dataclass
class Scan:
    """When an entry was last read for a stream that could not take it live: the state, and the head's number, then."""

    state: State
    head_n: int


@dataclass
class Slow(Listener):
    """A stream whose socket is full at times; ``received`` is what it got, by kind and id."""

    scans: dict[int, Scan] = field(default_factory=dict)
    received: set[tuple[str, str]] = field(default_factory=set)

    def scanned_n(self, h: Happening) -> int | None:
        """The head when it was read, be it again."""
        return self.scans[h.n].head_n if h.n in self.scans else None

    def scanned(self, h: Happening) -> State:
        """The state when it was read, be it again."""
        return self.scans[h.n].state

    def end(self, h: Happening, post: Happening, history: list[Happening]) -> bool | None:
        """The end of what was received must come; of what was not it may, if that could be seen once; else not."""
        if self.impersonal:
            return super().end(h, post, history)
        forgotten = self.forgotten(post, history[post.n :], history[-1].before)
        if (post.kind, post.about) in self.received:
            return self.graph or not forgotten
        return False if forgotten or self.reached(post) or self.sees(post) != "not" else None


def watch(world: World, play: Play) -> dict[Client, dict[int, Scan]]:
    """By member and number, how each entry was last read; whoever hears it live is not in it."""
    scans: dict[Client, dict[int, Scan]] = defaultdict(dict)
    read = world.hub.catchup_reader.read_page

    async def page(client: Client, get_end: Callable[[], Position]) -> CatchUpPage:
        position = client.position
        made = await read(client, get_end)
        scan = Scan(deepcopy(play.state), world.hub.head.n)
        scans[client].update(dict.fromkeys(range(position.n + 1, made.end_position.n + 1), scan))
        return made

    world.hub.catchup_reader.read_page = page  # type: ignore[method-assign]  # looks on
    return scans


async def stutter(play: Play) -> None:
    """Some sockets fill up, some drain, and the loop turns a few times, or not at all."""
    for _, socket, _ in play.listeners:
        chance = play.source.random()
        if chance < 0.06:
            socket.block()
        elif chance < 0.16:
            socket.unblock()
    for _ in range(play.source.choice([0, 0, 1, 2, 5])):
        await asyncio.sleep(0)


async def drained(play: Play) -> int:
    """Everybody reads on and comes to the head; gives how many entries were read again."""
    for _, socket, _ in play.listeners:
        socket.unblock()
    await eventually(
        lambda: all(stream.client in play.world.hub.live for _, _, stream in play.listeners), what="live again"
    )
    again = 0
    for ours, socket, _ in play.listeners:
        slow = cast("Slow", ours)
        slow.received = {(kind, about) for kind, about, _ in arrived(socket.messages())}
        again += sum(n > slow.opened_n for n in slow.scans)
    return again


@pytest.mark.parametrize("seed", sample(range(16), lambda seed: seed < 2))
async def test_who_reads_late_is_shown_what_may_be_seen_by_then(narrow: World, seed: int) -> None:
    """Sockets fill at random while blocks, protection, suspensions and groups come and go."""
    play = Play(narrow, seed, Slow)
    scans = watch(narrow, play)
    for number in range(400):
        play.step()
        await stutter(play)
        if number % 20 == 5:
            await play.listen()
            ours, _, stream = play.listeners[-1]
            cast("Slow", ours).scans = scans[stream.client]
    assert await drained(play) > 0
    assert play.check() > 100
    assert (narrow.hub.counters.malformed, narrow.hub.background_tasks.failures) == (0, 0)
    assert narrow.hub.counters.slow_demotions > 0
