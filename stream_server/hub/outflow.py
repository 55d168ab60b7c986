"""The way out: frames wait in their groups for a flush, and a flush is written in slices.

While idle a flush comes at the end of the loop's turn. While busy it comes on a tick, so that flushing takes a quarter
of the time: one send costs the same for one event or twenty. While a flush is still being written no other begins, so
that overload joins more instead of queueing more.

uvloop sends what was written at the end of the loop's turn. So a slice is counted in writes, not in time, and a flush
is over at the next turn only: a clock read in between would see the cheap half.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter

from stream_server.events import Position
from stream_server.hub.batch import Batch
from stream_server.hub.group import Group, Wrap
from stream_server.hub.member import Member

SLICE_WRITES = 512
"""Writes in one turn of the loop, about 4 ms of it: then others have theirs."""

TICK_SHARE = 3
TICK_SECONDS = 0.020
"""While busy, what arrives together leaves together: the next flush begins so many times the last one's length after
it, but no later than this."""


class Outflow:
    """Waiting groups and batches on their way; ``refuse`` is told of a member whose socket is full.

    ``delivered`` counts frames times members, ``flushes`` the joined writes.
    """

    def __init__(self, *, buffer_bytes: int, refuse: Callable[[Member, Position], None]) -> None:
        self.delivered = 0
        self.flushes = 0
        self._buffer_bytes = buffer_bytes
        self._refuse = refuse
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Group, None] = {}
        self._batches: deque[Batch] = deque()
        self._timer: asyncio.Handle | None = None
        self._slicing: asyncio.Handle | None = None
        self._began: float | None = None
        self._next_at = 0.0

    def mark(self, group: Group) -> None:
        """The group's first frame waits."""
        self._waiting[group] = None
        self._arm()

    def forget(self, group: Group) -> None:
        """The group has nobody left to send to."""
        self._waiting.pop(group, None)

    def take(self, group: Group) -> None:
        """What waits in the group goes to those who are in it now, and to nobody who comes after."""
        if group in self._waiting:
            del self._waiting[group]
            self._batches.append(group.take({}))
            self._slice_soon()

    def settle(self, group: Group) -> None:
        """Send now, whole, what waits or is on its way in this group."""
        self.take(group)
        for batch in self._batches:
            if batch.group is group:
                self._write(batch, batch.left)

    def _arm(self) -> None:
        """A flush when it is due, unless one is still being written: its end arms again."""
        if self._timer is None and self._began is None:
            wait = self._next_at - perf_counter()
            self._timer = self._loop.call_later(wait, self._flush) if wait > 0 else self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._began = perf_counter()
        self.flushes += 1
        made: dict[tuple[Wrap, bytes], bytes] = {}
        self._batches.extend([group.take(made) for group in self._waiting])
        self._waiting.clear()
        self._slice()

    def _slice(self) -> None:
        self._slicing = None
        room = SLICE_WRITES
        while self._batches and room > 0:
            batch = self._batches[0]
            writes = min(batch.left, room)
            self._write(batch, writes)
            room -= writes
            if not batch.left:
                self._batches.popleft()
        if self._batches:
            self._slice_soon()
        elif self._began is not None:
            self._loop.call_soon(self._flushed, self._began)

    def _flushed(self, began: float) -> None:
        """The next turn: what was written has been sent."""
        ended = perf_counter()
        self._next_at = ended + min(TICK_SECONDS, TICK_SHARE * (ended - began))
        self._began = None
        if self._waiting:
            self._arm()

    def _slice_soon(self) -> None:
        if self._slicing is None:
            self._slicing = self._loop.call_soon(self._slice)

    def _write(self, batch: Batch, most: int) -> None:
        served = batch.served
        batch.write(self._buffer_bytes, self._refuse, most)
        self.delivered += (batch.served - served) * batch.frames
