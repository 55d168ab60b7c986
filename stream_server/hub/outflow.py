"""The way out: frames wait in their groups for a flush, and a flush is written in slices.

While idle a flush comes at the end of the loop's turn. While busy it comes on a tick, so that flushing takes a quarter
of the time: one send costs the same for one event or twenty. While a flush is still being written no other begins, so
that overload joins more instead of queueing more.

uvloop sends what was written at the end of the loop's turn. So a slice is counted in writes, not in time, and a flush
is over at the next turn only: a clock read in between would see the cheap half.

What waits is cut into waves, and a turn writes of one wave only. So a burst is no single write that nobody has room
for, nor many in one turn, which would all count as unsent: who reads as fast as it is written stays live.
"""

import asyncio
from collections import deque
from time import perf_counter

from stream_server.hub.batch import Batch, Room
from stream_server.hub.group import Group, Wrap

SLICE_WRITES = 512
"""Writes in one turn of the loop, about 4 ms of it: then others have theirs."""

TICK_SHARE = 3
TICK_SECONDS = 0.020
"""While busy, what arrives together leaves together: the next flush begins so many times the last one's length after
it, but no later than this."""


WAVE_BYTES = 65_536
"""Entries that leave in one wave; half of a member's room, if that is less."""

BUSY_WAVES = 16
"""So many waves wait when whoever publishes does well to wait: 1 MiB of entries."""

CALM_SECONDS = 0.001
"""How often who waits for that looks whether it is over."""


class Outflow:
    """Waiting groups and batches on their way; ``room`` is what a member may have unsent.

    ``delivered`` counts events times members, also those that a member reads by itself; ``flushes`` the joined writes.
    """

    def __init__(self, room: Room) -> None:
        self.delivered = 0
        self.flushes = 0
        self.make_room(room)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Group, None] = {}
        self._batches: deque[Batch] = deque()
        self._timer: asyncio.Handle | None = None
        self._slicing: asyncio.Handle | None = None
        self._began: float | None = None
        self._next_at = 0.0
        self._wave = 0
        self._swell = 0

    def make_room(self, room: Room) -> None:
        """From now on a member may have so much unsent."""
        self._room = room
        self._wave_bytes = min(WAVE_BYTES, room.most // 2)

    @property
    def busy(self) -> bool:
        """Whether more was published than can be written soon; what waits is bounded if who publishes waits then."""
        return bool(self._batches) and self._wave - self._batches[0].wave > BUSY_WAVES

    async def calm(self) -> None:
        """Give the loop a turn, and as many as it takes until this is not :attr:`busy`; no client is waited for."""
        await asyncio.sleep(0)
        while self.busy:  # noqa: ASYNC110 - slices follow each other turn by turn meanwhile
            await asyncio.sleep(CALM_SECONDS)

    def mark(self, group: Group) -> None:
        """The group's first frame waits."""
        self._waiting[group] = None
        self._arm()

    def swell(self, size: int) -> None:
        """An entry of so many bytes was offered to all whom it concerns; enough of them are a wave."""
        self._swell += size
        if self._swell > self._wave_bytes:
            self._cut({})

    def forget(self, group: Group) -> None:
        """The group has nobody left to send to."""
        self._waiting.pop(group, None)

    def take(self, group: Group) -> None:
        """What waits in the group goes to those who are in it now, and to nobody who comes after."""
        if group in self._waiting:
            del self._waiting[group]
            self._append(group, {})
            self._slice_soon()

    def settle(self, group: Group) -> None:
        """Send now, whole, what waits or is on its way in this group."""
        self.take(group)
        for batch in self._batches:
            if batch.group is group:
                self._write(batch, batch.left)

    def _append(self, group: Group, made: dict[tuple[Wrap, bytes], bytes]) -> None:
        batch = group.take(made)
        batch.wave = self._wave
        self._batches.append(batch)

    def _cut(self, made: dict[tuple[Wrap, bytes], bytes]) -> None:
        """What waits is a wave of its own, whenever it leaves."""
        self._swell = 0
        self._wave += bool(self._waiting)
        for group in self._waiting:
            self._append(group, made)
        self._waiting.clear()

    def _arm(self) -> None:
        """A flush when it is due, unless one is still being written: its end arms again."""
        if self._timer is None and self._began is None:
            wait = self._next_at - perf_counter()
            self._timer = self._loop.call_later(wait, self._flush) if wait > 0 else self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._began = perf_counter()
        self.flushes += 1
        self._cut({})
        self._slice()

    def _slice(self) -> None:
        if self._slicing is not None:
            self._slicing.cancel()  # a flush slices at once: another slice in its turn would be a second wave
            self._slicing = None
        try:
            self._write_slice()
        finally:  # a fault of ours costs the batch that it met, and does not keep all that comes behind for ever
            if self._batches:
                self._slice_soon()
            elif self._began is not None:
                self._loop.call_soon(self._flushed, self._began)

    def _write_slice(self) -> None:
        room = SLICE_WRITES
        wave = self._batches[0].wave if self._batches else 0
        while self._batches and room > 0 and self._batches[0].wave == wave:
            batch = self._batches[0]
            writes = min(batch.left, room)
            self._write(batch, writes)
            room -= writes
            if not batch.left:
                self._batches.popleft()

    def _flushed(self, began: float) -> None:
        """The next turn: what was written has been sent."""
        ended = perf_counter()
        self._next_at = ended + min(TICK_SECONDS, TICK_SHARE * (ended - began))
        self._began = None
        if self._waiting or self._batches:
            self._arm()

    def _slice_soon(self) -> None:
        if self._slicing is None:
            self._slicing = self._loop.call_soon(self._slice)

    def _write(self, batch: Batch, most: int) -> None:
        if not most:
            return  # it was settled already
        served = batch.served
        batch.write(self._room, most)
        self.delivered += (batch.served - served) * batch.events
