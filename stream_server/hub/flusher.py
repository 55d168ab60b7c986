"""Writes frames to sockets: frames wait in the groups of a wave, a flush makes the wave due, and slices write it.

Six words, on the time axis of the event loop::

    entries     e1 e2 e3    e4        e5 e6                   e7
    gathering   [ wave 1 ]  [ wave 2                    ]     [ wave 3 ...
    due                     [ wave 1         ]                [ wave 2 ...
    iterations  |           | slice | slice  |       |        | slice |
    flush       planned     [ writing        ]  idle, planned [ writing ...
    tick                                     |<-- the next flush waits -->|

*Wave*: the groups whose frames are written before those of the next wave. New frames join the wave that gathers, or the
due frames of their group. *Flush*: runs at the end of an iteration, makes the gathering wave *due*, and ends when all
that was due is written. No flush begins meanwhile, so overload makes joined writes larger and not the queue longer.
*Slice*: the writes of one iteration. *Batch*: the frames of a group that has several clients, or that must not get more
frames. *Tick*: the longest wait for the next flush; `FlushPause` decides how much of it is waited.

A wave that has too many bytes is sealed: its groups, and those that are still due, become batches at once, and the next
wave begins to gather. An iteration writes one wave only. So a burst becomes neither one write that is too large for
every client, nor many writes in one iteration that all count as unsent.

The event loops, uvloop's and asyncio's own, send inside `write` if a client has no unsent bytes. So the duration of a
flush is the time that its writes took. There is one exception to the rule: if nothing waits, the last entry of a read
is written at once to the groups of one client, without a flush.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from time import perf_counter

from stream_server.events.entry import Entry
from stream_server.hub.flush_pause import FlushPause
from stream_server.hub.group import (
    FILTER_KINDS,
    NO_ENTRY,
    Batch,
    ClientGroup,
    DeliveryTimes,
    Wave,
    WrappedFrames,
    WriteLimits,
    wrap_once,
    write_to_one,
)
from stream_server.hub.messages import Framing

MAX_SLICE_WRITES = 512
"""Most writes in one iteration of the event loop, about 4 ms, so that other tasks get their turn."""


class FlushState(Enum):
    """The states of a flusher."""

    IDLE = "no frame waits, except in batches that were sealed for a client that joined or left"
    PLANNED = "frames wait for a flush, whose time is known"
    WRITING = "a flush is being written in slices"


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
        self._max_wave_bytes = min(65_536, limits.max_bytes // 2)
        self._loop = asyncio.get_running_loop()
        self._state = FlushState.IDLE
        self._flush_handle: asyncio.Handle | None = None
        self._slice_handle: asyncio.Handle | None = None
        self._flush_seconds = 0.0
        self._gathering, self._due = Wave(1), Wave(0)
        self._batches: deque[Batch] = deque()
        self._wrapped: WrappedFrames = defaultdict(dict)

    @property
    def is_busy(self) -> bool:
        """Whether more frames wait than can be written soon. The feed then waits for `drained` before it goes on."""
        most_waves = 16  # 1 MiB of entries
        return bool(self._batches) and self._gathering.number - self._batches[0].wave.number > most_waves

    async def drained(self) -> None:
        """Wait one iteration of the event loop, then until `is_busy` is False. Slow clients do not prolong the wait."""
        await asyncio.sleep(0)
        while self.is_busy:  # noqa: ASYNC110 - one slice is written per iteration meanwhile
            await asyncio.sleep(0.001)

    def call_after_flush(self, call: Callable[[], None]) -> bool:
        """Call ``call`` when the frames that wait now are written. Return False, without a call, if no frame waits."""
        if self._gathering.groups:
            self._gathering.calls.append(call)
        elif self._due.groups or self._batches:
            self._due.calls.append(call)
        else:
            return False
        return True

    def schedule_groups(self, groups: Iterable[ClientGroup]) -> None:
        """Include groups in the next flush. Call it when the first frame waits in each of them."""
        self._gathering.groups.update(dict.fromkeys(groups))
        if self._state is FlushState.IDLE:
            self._state = FlushState.PLANNED
            wait = self.pause.next_flush_at - perf_counter()
            loop = self._loop
            self._flush_handle = loop.call_later(wait, self._flush) if wait > 0 else loop.call_soon(self._flush)

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

        When the entries of a wave take 64 KiB of memory, which is more than their frames, or half of a client's buffer,
        the wave is sealed: the waiting frames of all groups become batches, and the next wave begins. A due group may
        still get frames, so the due frames count as part of the wave until all are written. Call this after the entry's
        frames were queued.
        """
        due, wave = self._due, self._gathering
        if wave.groups:  # an entry that matches nobody, long ago, must not make a later flush seem late
            wave.oldest_ms = min(wave.oldest_ms, entry.position.ms)
        wave.entry_bytes += entry.size
        if wave.entry_bytes + due.entry_bytes <= self._max_wave_bytes:
            return
        # There are frames only while a flush is planned or being written. So nothing needs to be scheduled.
        self._gathering = Wave(wave.number + 1)
        wave.oldest_ms = min(wave.oldest_ms, due.oldest_ms)
        for group in (*due.groups, *wave.groups):
            self._batches.append(group.take_batch(wave, self._wrapped))
        wave.groups.clear()
        self._due = Wave(0)
        self._due.calls = due.calls + wave.calls

    def discard_group(self, group: ClientGroup) -> None:
        """Drop the waiting frames of a group after its last client left."""
        self._gathering.groups.pop(group, None)
        self._due.groups.pop(group, None)

    def seal_group(self, group: ClientGroup) -> None:
        """Turn a group's waiting frames into a batch for its present clients. Clients that join later do not get it."""
        for wave in (self._due, self._gathering):
            if group in wave.groups:
                del wave.groups[group]
                self._batches.append(group.take_batch(wave, self._wrapped))
                self._schedule_slice()

    def flush_group(self, group: ClientGroup) -> None:
        """Write all waiting frames and unfinished batches of a group at once."""
        self.seal_group(group)
        for batch in self._batches:
            if batch.group is group:
                self._write_batch(batch, batch.remaining_count)

    def write_at_once(self, groups: Sequence[ClientGroup], entry: Entry) -> Sequence[ClientGroup]:
        """Write an entry to the groups of one client now, instead of a flush. Return the groups that need a flush.

        These are all groups, unless a flush may begin now and nothing waits for it. Otherwise they are the groups of
        several clients, those whose messages report matches, and those whose client may have no room. Call this only
        for the last entry of a read from Redis, because entries of one read share a write.
        """
        started_at = perf_counter()
        is_waiting = self._state is FlushState.WRITING or self._gathering.groups or self._batches
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

    def _flush(self) -> None:
        self._flush_handle = None
        self._state = FlushState.WRITING
        self.flushes += 1
        calls = self._due.calls  # of batches that wait
        self._due, self._gathering = self._gathering, Wave(self._gathering.number + 1)
        self._due.calls[:0] = calls
        self._run_slice()

    def _run_slice(self) -> None:
        if self._slice_handle is not None:
            self._slice_handle.cancel()  # or this iteration would write two waves
            self._slice_handle = None
        started_at = perf_counter()
        oldest_ms = (self._batches[0].wave if self._batches else self._due).oldest_ms
        try:
            if self._batches:
                self._write_batches(MAX_SLICE_WRITES)
            else:
                self._write_due_groups(MAX_SLICE_WRITES)
        finally:  # an error costs the batch in which it occurred, and must not block all later batches
            self._flush_seconds += perf_counter() - started_at
            if oldest_ms != NO_ENTRY:
                self.times.end_slice(self._now_ms() - oldest_ms)
            if self._batches or self._due.groups:
                self._schedule_slice()
            else:
                calls, self._due = self._due.calls, Wave(0)
                if not self._gathering.groups:  # those that waited have left, or their frames were in a batch
                    calls += self._gathering.calls
                    self._gathering.calls = []
                if self._state is FlushState.WRITING:
                    self.pause.end_flush(self._flush_seconds)
                    self._flush_seconds = 0.0
                    self._state = FlushState.IDLE
                    self._wrapped.clear()
                    if self._gathering.groups:
                        self.schedule_groups(())
                for call in calls:
                    call()

    def _write_batches(self, writes_left: int) -> int:
        """Write the batches of the first wave, up to the end of the slice. Return how many writes are left in it."""
        wave = self._batches[0].wave
        while self._batches and writes_left > 0 and self._batches[0].wave is wave:
            batch = self._batches[0]
            writes = min(batch.remaining_count, writes_left)
            self._write_batch(batch, writes)
            writes_left -= writes
            if not batch.remaining_count:
                self._batches.popleft()
        return writes_left

    def _write_due_groups(self, writes_left: int) -> None:
        """Write the frames of due groups, up to the end of the slice. No batch may wait: it would have older frames."""
        due, wrapped, warning_bytes = self._due.groups, self._wrapped, self._limits.warning_bytes
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
                    self._batches.append(group.take_batch(self._due, wrapped))
                    writes_left = self._write_batches(writes_left)
        finally:
            self._count_events(written)

    def _count_events(self, written: list[int]) -> None:
        """Count the events that were written to live clients, by the kind of their filters."""
        for kind, events in enumerate(written):
            self.times.add(kind, events)

    def _schedule_slice(self) -> None:
        if self._slice_handle is None:
            self._slice_handle = self._loop.call_soon(self._run_slice)

    def _write_batch(self, batch: Batch, max_writes: int) -> None:
        if not max_writes:
            return  # written completely by `flush_group`
        served = batch.served_count
        batch.write_slice(self._limits, max_writes)
        self.times.add(batch.group.filter_kind, (batch.served_count - served) * batch.event_count)
