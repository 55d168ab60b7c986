"""The way out: frames wait in their groups for a flush, and a flush is written in slices.

While idle a flush comes at the end of the loop's turn. While busy it comes on a tick, as long as the last one took and
20 ms at the most: one send costs the same for one event or twenty. While a flush is still being written no other
begins, so that overload joins more instead of queueing more.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter as now  # uvloop's loop.time() stands still within a turn of the loop

from stream_server.events import Position
from stream_server.hub.batch import Batch
from stream_server.hub.group import Group, Wrap
from stream_server.hub.member import Member

SLICE_SECONDS = 0.005
"""The longest that a flush holds the loop before others have their turn."""

TICK_SECONDS = 0.020
"""While busy, what arrives together leaves together: no flush begins sooner after the last than that took, so half of
the time is left for everything else, but no later than this."""


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
        self._slice_ends = 0.0
        self._worked = 0.0
        self._tick = 0.0
        self._drained_at = 0.0

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
        for batch in [batch for batch in self._batches if batch.group is group]:
            self._write(batch, _never)

    def _arm(self) -> None:
        """A flush when it is due, unless one is still being written: what is drained last, arms again."""
        if self._timer is None and not self._batches:
            wait = self._drained_at + self._tick - now()
            self._timer = self._loop.call_later(wait, self._flush) if wait > 0 else self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._timer = None
        self.flushes += 1
        made: dict[tuple[Wrap, bytes], bytes] = {}
        self._batches.extend([group.take(made) for group in self._waiting])
        self._waiting.clear()
        self._slice()

    def _slice(self) -> None:
        self._slicing = None
        began = now()
        self._slice_ends = began + SLICE_SECONDS
        while self._batches and self._write(self._batches[0], self._over):
            self._batches.popleft()
            if self._over():
                break
        self._worked += now() - began
        if self._batches:
            self._slice_soon()
        else:
            self._drained()

    def _drained(self) -> None:
        self._tick = min(TICK_SECONDS, self._worked)
        self._worked = 0.0
        self._drained_at = now()
        if self._waiting:
            self._arm()

    def _slice_soon(self) -> None:
        if self._slicing is None:
            self._slicing = self._loop.call_soon(self._slice)

    def _write(self, batch: Batch, expired: Callable[[], bool]) -> bool:
        served = batch.served
        done = batch.write(self._buffer_bytes, self._refuse, expired)
        self.delivered += (batch.served - served) * batch.frames
        return done

    def _over(self) -> bool:
        return now() >= self._slice_ends


def _never() -> bool:
    return False
