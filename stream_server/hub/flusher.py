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

from stream_server.hub.batch import Batch, WriteLimits
from stream_server.hub.framing import WrapBytes
from stream_server.hub.group import ClientGroup

MAX_SLICE_WRITES = 512
"""Writes in one turn of the loop, about 4 ms of it: then others have theirs."""

FLUSH_PAUSE_FACTOR = 3
MAX_FLUSH_PAUSE_SECONDS = 0.020
"""While busy, what arrives together leaves together: the next flush begins so many times the last one's length after
it, but no later than this."""


MAX_WAVE_BYTES = 65_536
"""Entries that leave in one wave; half of a member's room, if that is less."""

MAX_WAITING_WAVES = 16
"""So many waves wait when whoever publishes does well to wait: 1 MiB of entries."""

DRAIN_POLL_SECONDS = 0.001
"""How often who waits for that looks whether it is over."""


class Flusher:
    """Waiting groups and batches on their way; ``room`` is what a member may have unsent.

    ``delivered`` counts events times members, also those that a member reads by itself; ``flushes`` the joined writes.
    """

    def __init__(self, limits: WriteLimits) -> None:
        self.delivered = 0
        self.flushes = 0
        self.set_limits(limits)
        self._loop = asyncio.get_running_loop()
        self._pending_groups: dict[ClientGroup, None] = {}
        self._batches: deque[Batch] = deque()
        self._flush_handle: asyncio.Handle | None = None
        self._slice_handle: asyncio.Handle | None = None
        self._flush_started_at: float | None = None
        self._next_flush_at = 0.0
        self._wave_number = 0
        self._wave_filled_bytes = 0

    def set_limits(self, limits: WriteLimits) -> None:
        """From now on a member may have so much unsent."""
        self._limits = limits
        self._max_wave_bytes = min(MAX_WAVE_BYTES, limits.max_bytes // 2)

    @property
    def is_busy(self) -> bool:
        """Whether more was published than can be written soon; what waits is bounded if who publishes waits then."""
        return bool(self._batches) and self._wave_number - self._batches[0].wave_number > MAX_WAITING_WAVES

    async def drained(self) -> None:
        """Give the loop a turn, and as many as it takes until this is not :attr:`is_busy`; no client is waited for."""
        await asyncio.sleep(0)
        while self.is_busy:  # noqa: ASYNC110 - slices follow each other turn by turn meanwhile
            await asyncio.sleep(DRAIN_POLL_SECONDS)

    def schedule_group(self, group: ClientGroup) -> None:
        """The group's first frame waits."""
        self._pending_groups[group] = None
        self._schedule_flush()

    def add_bytes(self, entry_bytes: int) -> None:
        """An entry of so many bytes was offered to all whom it concerns; enough of them are a wave."""
        self._wave_filled_bytes += entry_bytes
        if self._wave_filled_bytes > self._max_wave_bytes:
            self._seal_wave({})

    def discard_group(self, group: ClientGroup) -> None:
        """The group has nobody left to send to."""
        self._pending_groups.pop(group, None)

    def seal_group(self, group: ClientGroup) -> None:
        """What waits in the group goes to those who are in it now, and to nobody who comes after."""
        if group in self._pending_groups:
            del self._pending_groups[group]
            self._append_batch(group, {})
            self._schedule_slice()

    def flush_group(self, group: ClientGroup) -> None:
        """Send now, whole, what waits or is on its way in this group."""
        self.seal_group(group)
        for batch in self._batches:
            if batch.memberships is group.memberships:
                self._write_batch(batch, batch.remaining_count)

    def _append_batch(self, group: ClientGroup, wrapped_cache: dict[tuple[WrapBytes, bytes], bytes]) -> None:
        batch = group.take_batch(wrapped_cache)
        batch.wave_number = self._wave_number
        self._batches.append(batch)

    def _seal_wave(self, wrapped_cache: dict[tuple[WrapBytes, bytes], bytes]) -> None:
        """What waits is a wave of its own, whenever it leaves."""
        self._wave_filled_bytes = 0
        self._wave_number += bool(self._pending_groups)
        for group in self._pending_groups:
            self._append_batch(group, wrapped_cache)
        self._pending_groups.clear()

    def _schedule_flush(self) -> None:
        """A flush when it is due, unless one is still being written: its end arms again."""
        if self._flush_handle is None and self._flush_started_at is None:
            wait = self._next_flush_at - perf_counter()
            self._flush_handle = (
                self._loop.call_later(wait, self._flush) if wait > 0 else self._loop.call_soon(self._flush)
            )

    def _flush(self) -> None:
        self._flush_handle = None
        self._flush_started_at = perf_counter()
        self.flushes += 1
        self._seal_wave({})
        self._run_slice()

    def _run_slice(self) -> None:
        if self._slice_handle is not None:
            self._slice_handle.cancel()  # a flush slices at once: another slice in its turn would be a second wave
            self._slice_handle = None
        try:
            self._write_slice()
        finally:  # a fault of ours costs the batch that it met, and does not keep all that comes behind for ever
            if self._batches:
                self._schedule_slice()
            elif self._flush_started_at is not None:
                self._loop.call_soon(self._finish_flush, self._flush_started_at)

    def _write_slice(self) -> None:
        room = MAX_SLICE_WRITES
        wave = self._batches[0].wave_number if self._batches else 0
        while self._batches and room > 0 and self._batches[0].wave_number == wave:
            batch = self._batches[0]
            writes = min(batch.remaining_count, room)
            self._write_batch(batch, writes)
            room -= writes
            if not batch.remaining_count:
                self._batches.popleft()

    def _finish_flush(self, started_at: float) -> None:
        """The next turn: what was written has been sent."""
        ended = perf_counter()
        self._next_flush_at = ended + min(MAX_FLUSH_PAUSE_SECONDS, FLUSH_PAUSE_FACTOR * (ended - started_at))
        self._flush_started_at = None
        if self._pending_groups or self._batches:
            self._schedule_flush()

    def _schedule_slice(self) -> None:
        if self._slice_handle is None:
            self._slice_handle = self._loop.call_soon(self._run_slice)

    def _write_batch(self, batch: Batch, max_writes: int) -> None:
        if not max_writes:
            return  # it was settled already
        served = batch.served_count
        batch.write_slice(self._limits, max_writes)
        self.delivered += (batch.served_count - served) * batch.event_count
