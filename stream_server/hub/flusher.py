"""Writes frames to sockets: frames wait in their groups for a flush, and a flush is written in slices.

A flush runs at the end of the event loop's iteration. `FlushPause` decides when the next one may begin. No flush begins
while another one is being written, so overload makes joined writes larger and not the queue longer.

The event loops, uvloop's and asyncio's own, send inside `write` if a client has no unsent bytes. So the duration of a
flush is the time that its writes took.

Waiting frames are cut into waves, and one iteration writes only one wave. So a burst becomes neither one write that is
too large for every client, nor many writes in one iteration that all count as unsent.

The frames of a group become a batch when their turn comes, or when their wave is full. Most groups have one client and
need no batch. If nothing waits, the last entry of a read is written to them at once, without a flush.

`FlushPause` measures how busy the process is, and how long a flush waits so that more entries join it.
"""

import asyncio
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter, thread_time
from typing import NamedTuple

from stream_server.events.entry import Entry
from stream_server.hub.group import (
    FILTER_KINDS,
    Batch,
    ClientGroup,
    DeliveryTimes,
    WrappedFrames,
    WriteLimits,
    wrap_once,
    write_to_one,
)
from stream_server.hub.messages import Framing

NO_PAUSE_PRESSURE = 0.50
"""Pressure up to which a flush follows at once. A thousand clients with fifty events a second each take 45 % of a core.
Their median wait is then 5 ms; with the whole tick at any pressure it was 20 ms, for 33 % of a core."""

WHOLE_PAUSE_PRESSURE = 0.70
"""Pressure from which on a flush waits for the whole tick. In between, the pause grows in proportion.

So a higher load finds a balance between the two. With 0.60 and 0.85 the balance for two hundred events a second was at
66 % of a core, and the median wait no shorter than half of the tick's."""

TICK_FLUSHES = 3
"""The tick, as a multiple of the last flush's duration. So flushes take a quarter of the time under full load."""

MAX_TICK_SECONDS = 0.020
"""Longest tick in seconds. People do not notice it."""

WINDOW_SECONDS = 0.200
"""Length in seconds of the recent past. Half of it, when its older half was just dropped."""


class _Mark(NamedTuple):
    """The clocks at one moment, in seconds. ``flushing`` is the duration of all flushes until then."""

    wall: float
    cpu: float
    flushing: float


class FlushPause:
    """Measures how busy the thread is that flushes (its *pressure*), and says when the next flush may begin.

    ``next_flush_at`` is the earliest time of the next flush, in seconds of the clock ``wall_time``. Before the first
    flush it is 0.
    """

    def __init__(
        self, wall_time: Callable[[], float] = perf_counter, cpu_time: Callable[[], float] = thread_time
    ) -> None:
        """``cpu_time`` returns the CPU time of the calling thread in seconds. So call all methods in one thread."""
        self.next_flush_at = 0.0
        self._wall_time = wall_time
        self._cpu_time = cpu_time
        self._flushing_seconds = 0.0
        self._older = self._newer = _Mark(wall_time(), cpu_time(), 0.0)

    @property
    def flush_share(self) -> float:
        """Share of the recent past that flushes took by the clock, from 0.0 to 1.0."""
        return self._measure()[1]

    @property
    def pressure(self) -> float:
        """Share of the recent past in which the process worked or waited for a core, from 0.0 to 1.0."""
        return self._measure()[2]

    def end_flush(self, duration: float) -> None:
        """Count a flush that ends now and took ``duration`` seconds by the clock. Decide when the next may begin."""
        self._flushing_seconds += duration
        now, _, pressure = self._measure()
        tick = min(MAX_TICK_SECONDS, TICK_FLUSHES * duration)
        self.next_flush_at = now.wall + tick * pause_share(pressure)
        if now.wall - self._newer.wall >= WINDOW_SECONDS / 2:
            self._older, self._newer = self._newer, now

    def _measure(self) -> tuple[_Mark, float, float]:
        """Return the clocks now, `flush_share` and `pressure`. Both are shares (0.0 to 1.0) of the time since a mark.

        That time counts as half of `WINDOW_SECONDS` at least, or the first flush would seem to fill it.
        """
        now, older = _Mark(self._wall_time(), self._cpu_time(), self._flushing_seconds), self._older
        elapsed = max(now.wall - older.wall, WINDOW_SECONDS / 2)
        flush_share = (now.flushing - older.flushing) / elapsed
        return now, flush_share, max(flush_share, (now.cpu - older.cpu) / elapsed)


def pause_share(pressure: float) -> float:
    """Return which share of the tick (the longest wait) a flush waits at this ``pressure``. Both are 0.0 to 1.0."""
    ramp = (pressure - NO_PAUSE_PRESSURE) / (WHOLE_PAUSE_PRESSURE - NO_PAUSE_PRESSURE)
    return min(1.0, max(0.0, ramp))


MAX_SLICE_WRITES = 512
"""Most writes in one iteration of the event loop, about 4 ms, so that other tasks get their turn."""

MAX_WAVE_BYTES = 65_536
"""Most bytes of entries in one wave. Half of a client's buffer, if that is less."""

MAX_WAITING_WAVES = 16
"""Number of waiting waves above which the feed should stop publishing for a moment: 1 MiB of entries."""

_NO_ENTRY = sys.maxsize
"""Instead of the time of the oldest waiting entry: none waits."""

DRAIN_POLL_SECONDS = 0.001
"""Interval in seconds at which `drained` checks whether the flusher is still busy."""


class Flusher:
    """Writes the encoded messages (frames) that wait in groups of clients, joined.

    Attributes:
        flushes: Number of flushes.
        pause: Decides when the next flush begins.
        times: How many events were written, and how long they took from the log to the sockets.
    """

    def __init__(self, limits: WriteLimits, now_ms: Callable[[], int]) -> None:
        """``now_ms`` returns the wall clock's time in ms since 1970."""
        self.flushes = 0
        self.pause = FlushPause()
        self.times = DeliveryTimes()
        self._now_ms = now_ms
        self._limits = limits
        self._max_wave_bytes = min(MAX_WAVE_BYTES, limits.max_bytes // 2)
        self._loop = asyncio.get_running_loop()
        self._after_flush: list[tuple[int, Callable[[], None]]] = []
        self._pending_groups: dict[ClientGroup, None] = {}
        self._due_groups: dict[ClientGroup, None] = {}
        self._batches: deque[Batch] = deque()
        self._wrapped: WrappedFrames = defaultdict(dict)
        self._flush_handle: asyncio.Handle | None = None
        self._slice_handle: asyncio.Handle | None = None
        self._is_flushing = False
        self._flush_seconds = 0.0
        self._wave_number = 0
        self._wave_bytes = 0
        self._due_bytes = 0
        self._oldest_ms = self._due_oldest_ms = _NO_ENTRY

    @property
    def is_busy(self) -> bool:
        """Whether more frames wait than can be written soon. The feed then waits for `drained` before it goes on."""
        return bool(self._batches) and self._wave_number - self._batches[0].wave_number > MAX_WAITING_WAVES

    async def drained(self) -> None:
        """Wait one iteration of the event loop, then until `is_busy` is False. Slow clients do not prolong the wait."""
        await asyncio.sleep(0)
        while self.is_busy:  # noqa: ASYNC110 - one slice is written per iteration meanwhile
            await asyncio.sleep(DRAIN_POLL_SECONDS)

    def call_after_flush(self, call: Callable[[], None]) -> bool:
        """Call ``call`` when the frames that wait now are written. Return False, without a call, if no frame waits."""
        if not (self._pending_groups or self._due_groups or self._batches):
            return False
        self._after_flush.append((self.flushes + bool(self._pending_groups), call))
        return True

    def schedule_groups(self, groups: Iterable[ClientGroup]) -> None:
        """Include groups in the next flush. Call it when the first frame waits in each of them."""
        self._pending_groups.update(dict.fromkeys(groups))
        if self._flush_handle is None and not self._is_flushing:
            wait = self.pause.next_flush_at - perf_counter()
            loop = self._loop
            self._flush_handle = loop.call_later(wait, self._flush) if wait > 0 else loop.call_soon(self._flush)

    def write_at_once(self, groups: Sequence[ClientGroup], entry: Entry) -> Sequence[ClientGroup]:
        """Write an entry to the groups of one client now, instead of a flush. Return the groups that need a flush.

        These are all groups, unless a flush may begin now and nothing waits for it. Otherwise they are the groups of
        several clients, those whose messages report matches, and those whose client may have no room. Call this only
        for the last entry of a read from Redis, because entries of one read share a write.
        """
        started_at = perf_counter()
        is_waiting = self._is_flushing or self._pending_groups or self._batches
        if is_waiting or self.pause.next_flush_at > started_at or len(groups) > MAX_SLICE_WRITES:
            return groups
        warning_bytes, written = self._limits.warning_bytes, [0] * len(FILTER_KINDS)
        framing, data, left = None, b"", []
        for group in groups:  # the loop runs for every client, so it makes almost no calls
            if group.shared_framing is not framing:
                framing = group.shared_framing
                data = b"" if framing is None else self._wrap_entry(entry, framing)
            if data and len(group.members) == 1:
                (client,) = group.members
                if write_to_one(client, data, warning_bytes):
                    group.batched += 1
                    written[group.filter_kind] += 1
                    continue
            left.append(group)
        self._wrapped.clear()
        if len(left) < len(groups):
            self.flushes += 1
            self._count_events(written)
            self.times.end_slice(self._now_ms() - entry.position.ms)
            self.pause.end_flush(perf_counter() - started_at)
        return left

    def _wrap_entry(self, entry: Entry, framing: Framing) -> bytes:
        """Return the bytes of an entry for the sockets, ``b""`` if there are none, too many, or after an error."""
        try:
            frame = entry.frame(framing.encode_entry)
            data = wrap_once(framing.wrap, frame, self._wrapped) if frame else b""
        except Exception:  # noqa: BLE001 - the flush finds the same error
            return b""
        return data if len(data) <= self._limits.max_bytes - self._limits.warning_bytes else b""

    def flush_if_due(self) -> None:
        """Flush the waiting frames now instead of after the event loop's other work, unless the flush must wait.

        Call it after the last entry of a read. An error is reported to the event loop and not raised.
        """
        if self._flush_handle is None or self.pause.next_flush_at > perf_counter():
            return
        self._flush_handle.cancel()
        try:
            self._flush()
        except Exception as error:  # noqa: BLE001 - the caller must go on receiving entries
            self._loop.call_exception_handler({"message": "a flush failed", "exception": error})

    def add_entry(self, entry: Entry) -> None:
        """Count an entry towards the wave, the part of a burst that is written to all clients before the next part.

        When the entries of a wave take 64 KiB of memory, which is more than their frames, the next one begins. A due
        group may still get frames, so the due frames count as part of the wave until all are written. Call this after
        the entry's frames were queued.
        """
        if self._pending_groups:  # an entry that matches nobody, long ago, must not make a later flush seem late
            self._oldest_ms = min(self._oldest_ms, entry.position.ms)
        self._wave_bytes += entry.size
        if self._wave_bytes + self._due_bytes > self._max_wave_bytes:
            self._seal_wave()

    def discard_group(self, group: ClientGroup) -> None:
        """Drop the waiting frames of a group after its last client left."""
        self._pending_groups.pop(group, None)
        self._due_groups.pop(group, None)

    def seal_group(self, group: ClientGroup) -> None:
        """Turn a group's waiting frames into a batch for its present clients. Clients that join later do not get it."""
        if group in self._pending_groups or group in self._due_groups:
            self.discard_group(group)
            self._append_batch(group)
            self._schedule_slice()

    def flush_group(self, group: ClientGroup) -> None:
        """Write all waiting frames and unfinished batches of a group at once."""
        self.seal_group(group)
        for batch in self._batches:
            if batch.group is group:
                self._write_batch(batch, batch.remaining_count)

    def _append_batch(self, group: ClientGroup) -> Batch:
        batch = group.take_batch(self._wrapped)
        batch.wave_number = self._wave_number
        batch.filter_kind = group.filter_kind
        batch.oldest_ms = min(self._oldest_ms, self._due_oldest_ms)
        self._batches.append(batch)
        return batch

    def _seal_wave(self) -> None:
        """Turn the waiting frames of all groups into batches. They are one wave, written before later frames."""
        self._wave_bytes = self._due_bytes = 0
        self._wave_number += 1
        for group in (*self._due_groups, *self._pending_groups):
            self._append_batch(group)
        self._due_groups.clear()
        self._pending_groups.clear()
        self._oldest_ms = self._due_oldest_ms = _NO_ENTRY

    def _flush(self) -> None:
        self._flush_handle = None
        self._is_flushing = True
        self.flushes += 1
        self._wave_number += 1
        self._due_groups, self._pending_groups = self._pending_groups, self._due_groups
        self._due_bytes, self._wave_bytes = self._wave_bytes, 0
        self._due_oldest_ms, self._oldest_ms = self._oldest_ms, _NO_ENTRY
        self._run_slice()

    def _run_slice(self) -> None:
        if self._slice_handle is not None:
            self._slice_handle.cancel()  # or this iteration would write two waves
            self._slice_handle = None
        started_at = perf_counter()
        oldest_ms = self._batches[0].oldest_ms if self._batches else self._due_oldest_ms
        try:
            if self._batches:
                self._write_batches(MAX_SLICE_WRITES)
            else:
                self._write_due_groups(MAX_SLICE_WRITES)
        finally:  # an error costs the batch in which it occurred, and must not block all later batches
            self._flush_seconds += perf_counter() - started_at
            if oldest_ms != _NO_ENTRY:
                self.times.end_slice(self._now_ms() - oldest_ms)
            if self._batches or self._due_groups:
                self._schedule_slice()
            elif self._is_flushing:  # the flush ends
                self.pause.end_flush(self._flush_seconds)
                self._flush_seconds = 0.0
                self._is_flushing = False
                self._due_bytes = 0
                self._wrapped.clear()
                if self._pending_groups:
                    self.schedule_groups(())
                if self._after_flush:
                    self._call_after_flush()

    def _write_batches(self, writes_left: int) -> int:
        """Write the batches of the first wave, up to the end of the slice. Return how many writes are left in it."""
        wave = self._batches[0].wave_number
        while self._batches and writes_left > 0 and self._batches[0].wave_number == wave:
            batch = self._batches[0]
            writes = min(batch.remaining_count, writes_left)
            self._write_batch(batch, writes)
            writes_left -= writes
            if not batch.remaining_count:
                self._batches.popleft()
        return writes_left

    def _write_due_groups(self, writes_left: int) -> None:
        """Write the frames of due groups, up to the end of the slice. No batch may wait: it would have older frames."""
        due, wrapped, warning_bytes = self._due_groups, self._wrapped, self._limits.warning_bytes
        most_bytes = self._limits.max_bytes - warning_bytes
        written = [0] * len(FILTER_KINDS)
        try:
            while due and writes_left > 0:
                group, _ = due.popitem()
                events = group.write_to_only_member(warning_bytes, most_bytes, wrapped)
                if events is not None:
                    written[group.filter_kind] += events
                    writes_left -= 1
                else:
                    self._append_batch(group)
                    writes_left = self._write_batches(writes_left)
        finally:
            self._count_events(written)

    def _count_events(self, written: list[int]) -> None:
        """Count the events that were written to live clients, by the kind of their filters."""
        for kind, events in enumerate(written):
            self.times.add(kind, events)

    def _call_after_flush(self) -> None:
        """Make the calls that waited for this flush."""
        due = [call for flush, call in self._after_flush if flush <= self.flushes]
        self._after_flush = [row for row in self._after_flush if row[0] > self.flushes]
        for call in due:
            call()

    def _schedule_slice(self) -> None:
        if self._slice_handle is None:
            self._slice_handle = self._loop.call_soon(self._run_slice)

    def _write_batch(self, batch: Batch, max_writes: int) -> None:
        if not max_writes:
            return  # written completely by `flush_group`
        served = batch.served_count
        batch.write_slice(self._limits, max_writes)
        self.times.add(batch.filter_kind, (batch.served_count - served) * batch.event_count)
