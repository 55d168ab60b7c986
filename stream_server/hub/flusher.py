"""Writes what waits for live clients: their groups join waves, and a flush writes the waves in slices.

Six words, most of them on the time axis of the event loop. ``e`` is an entry, and ``w`` is a wave::

    entries     e1 e2 e3   e4        e5 e6                       e7
    gathering   [   w1   ] [           w2          ]             [ w3 ...
    due                    [   w1    ]             [   w2  ]
    state       PLANNED    WRITING   PLANNED       WRITING  IDLE PLANNED
    iterations  |          | slice | slice |       | slice |
    tick                             |<----------->|

*Wave*: groups of clients in the order in which they are written. A group joins the wave that *gathers* with the first
of its pending frames, and its place stands for the oldest that waits for the group. *Flush*: makes this wave *due*, and
ends when all that is due is written. No flush begins meanwhile, so overload makes joined writes larger and not the
queue longer: a frame joins the pending ones of its group, also if the wave of the group is due. *Slice*: the writes of
one iteration. *Batch*: pending frames that must get no more frames, or no more clients. *Tick*: the longest wait for
the next flush; `FlushPause` decides how much of it is waited.

A wave that has too many bytes is *sealed*: all pending frames become batches. The wave is due at once, and the next one
begins to gather. One iteration writes one wave only. So a burst becomes neither one write that is too large for every
client, nor many writes in one iteration that all count as unsent.

The event loops, uvloop's and asyncio's own, send inside `write` if a client has no unsent bytes. So the duration of a
flush is the time that its writes took. There is one exception to the rule: if nothing waits, the last entry of a read
is written at once to the groups of one client, without a batch and a flush.
"""

import asyncio
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from time import monotonic

from stream_server.events.entry import Entry
from stream_server.hub.delivery import encode_matched
from stream_server.hub.flush_pause import FlushPause
from stream_server.hub.group import (
    FILTER_KINDS,
    ClientGroup,
    DeliveryTimes,
    WrappedFrames,
    WriteLimits,
    wrap_joined,
    wrap_once,
    write_to_one,
)
from stream_server.hub.messages import Framing, WrapBytes

MAX_SLICE_WRITES = 512
"""Most writes in one iteration of the event loop, about 4 ms, so that other tasks get their turn."""

MAX_DUE_WAVES = 16
"""Number of waves, 1 MiB of entries, above which the feed waits."""

NO_ENTRY = sys.maxsize
"""Instead of the time of the oldest entry of a wave: the wave has none."""


class Wave:
    """A part of a burst: what is written to all its clients before the next wave.

    Attributes:
        groups: The groups to write, in the order of their first frames. If a group has nothing left, it is passed over.
        pending_bytes: Memory in bytes of the entries whose frames are pending, which is more than the frames take. A
            sealed wave has none.
        is_sealed: Whether none of its frames is pending any more.
        oldest_ms: Time of its oldest entry, in ms since 1970, or `NO_ENTRY`.
        calls: What is called when it is written.
    """

    __slots__ = ("calls", "groups", "is_sealed", "oldest_ms", "pending_bytes")

    def __init__(self) -> None:
        self.groups: deque[ClientGroup] = deque()
        self.pending_bytes = 0
        self.is_sealed = False
        self.oldest_ms = NO_ENTRY
        self.calls: list[Callable[[], None]] = []

    def seal(self) -> None:
        """Make the pending frames of its groups batches. Does nothing the second time."""
        if not self.is_sealed:
            for group in self.groups:
                group.seal()
            self.pending_bytes = 0
            self.is_sealed = True


class FlushState(Enum):
    """The states of a flusher. Each has one next step at most, which the event loop calls."""

    IDLE = "nothing waits"
    PLANNED = "something waits, and the next step is the flush"
    WRITING = "a flush is being written, and the next step is its next slice"


class Flusher:
    """Writes what waits for the client groups, wave by wave.

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
        self._max_alone_bytes = limits.max_bytes - limits.warning_bytes
        self._loop = asyncio.get_running_loop()
        self._state = FlushState.IDLE
        self._next_step: asyncio.Handle | None = None
        self._flush_seconds = 0.0
        self._gathering = Wave()
        self._due: deque[Wave] = deque()
        self._wrapped: WrappedFrames = defaultdict(dict)

    @property
    def is_busy(self) -> bool:
        """Whether more frames wait than can be written soon. The feed then waits for `drained` before it goes on."""
        return len(self._due) > MAX_DUE_WAVES

    async def drained(self) -> None:
        """Wait one iteration of the event loop, then until `is_busy` is False. Slow clients do not prolong the wait."""
        await asyncio.sleep(0)
        while self.is_busy:  # noqa: ASYNC110 - one slice is written per iteration meanwhile
            await asyncio.sleep(0.001)

    def call_after_flush(self, call: Callable[[], None]) -> bool:
        """Call ``call`` when what waits now is written. Return False, without a call, if nothing waits."""
        if self._state is FlushState.IDLE:
            return False
        last = self._gathering if self._gathering.groups or not self._due else self._due[-1]
        last.calls.append(call)
        return True

    def schedule(self, groups: Iterable[ClientGroup]) -> None:
        """Include groups in the next flush. Call it when the first frame is pending in each of them."""
        self._gathering.groups.extend(groups)
        if self._state is FlushState.IDLE:
            self._plan()

    def flush_if_due(self) -> None:
        """Flush what waits now instead of after the event loop's other work, unless the flush must wait.

        Call it after the last entry of a read. An error is reported to the event loop and not raised.
        """
        if self._state is not FlushState.PLANNED or self.pause.next_flush_at > monotonic():
            return
        assert self._next_step is not None
        self._next_step.cancel()
        try:
            self._flush()
        except Exception as error:  # noqa: BLE001 - the caller must go on receiving entries
            self._loop.call_exception_handler({"message": "a flush failed", "exception": error})

    def count_entry(self, entry: Entry) -> None:
        """Count the memory of an entry whose frames were queued just now. End the gathering wave if it is too large.

        It is too large when the pending frames come from more than 64 KiB of entries, or than half of a client's
        buffer. Frames are pending in two waves at most: the one that gathers, and the last one that is due, whose
        groups a new frame joins. All earlier ones are sealed.
        """
        if self._state is FlushState.IDLE:
            return  # it matched nobody, or was written at once
        gathering, last_due = self._gathering, self._due[-1] if self._due else None
        if gathering.groups:  # an entry that matches nobody, long ago, must not make a later flush seem late
            gathering.oldest_ms = min(gathering.oldest_ms, entry.position.ms)
        gathering.pending_bytes += entry.size
        pending_bytes = gathering.pending_bytes + (0 if last_due is None else last_due.pending_bytes)
        if pending_bytes <= self._max_wave_bytes:
            return
        if last_due is not None:
            last_due.seal()
        gathering.seal()
        self._due.append(gathering)  # a flush is planned or being written, so nothing needs to be scheduled
        self._gathering = Wave()

    def flush_group(self, group: ClientGroup) -> None:
        """Write all that waits for a group at once."""
        group.seal()
        while group.sealed_batches:
            _, delivered = group.write_oldest_batch(self._limits, sys.maxsize, self._wrapped)
            self.times.add(group.filter_kind, delivered)

    def write_at_once(self, groups: Sequence[ClientGroup], entry: Entry) -> Sequence[ClientGroup]:
        """Write an entry to the groups of one client now, instead of a flush. Return the groups that need a flush.

        These are all groups, unless a flush may begin now and nothing waits for it. Otherwise they are the groups of
        several clients, those that count entries, and those whose client may have no room. Call this only for the last
        entry of a read from Redis, because entries of one read share a write.
        """
        started_at = monotonic()
        is_due = self._state is FlushState.IDLE and self.pause.next_flush_at <= started_at
        if not is_due or len(groups) > MAX_SLICE_WRITES:
            return groups
        warning_bytes, delivered = self._limits.warning_bytes, [0] * len(FILTER_KINDS)
        framing: Framing | None = None
        data: bytes | None = None
        left = []
        for group in groups:  # the loop runs for every client, so it makes almost no calls
            members = group.members
            if not isinstance(members, tuple) or len(members) != 1:
                left.append(group)
                continue
            if framing is None or group.shared_framing is not framing:
                framing = group.shared_framing
                data = self._wrap_entry(entry, group)
            if data is not None and write_to_one(members, data, warning_bytes):
                group.batched += 1
                delivered[group.filter_kind] += 1
            else:
                left.append(group)
        self._wrapped.clear()
        if len(left) < len(groups):
            self.flushes += 1
            for kind, events in enumerate(delivered):
                self.times.add(kind, events)
            self.times.end_slice(self._now_ms() - entry.position.ms)
            self.pause.end_flush(monotonic() - started_at)
        return left

    def _wrap_entry(self, entry: Entry, group: ClientGroup) -> bytes | None:
        """Return the bytes of an entry for the sockets of a group. None if there are none, or too many.

        None also after an error, and for a group that counts entries.
        """
        if group.window is not None:
            return None
        try:
            matched = None if group.shared_framing is not None else encode_matched(group.subscription, entry)
            frame = entry.frame(group.encode_entry, matched)
            data = wrap_once(group.wrap, frame, self._wrapped) if frame else None
        except Exception:  # noqa: BLE001 - the flush finds the same error
            return None
        return data if data is not None and len(data) <= self._max_alone_bytes else None

    def _plan(self) -> None:
        """Plan a flush for the time that `pause` allows."""
        self._state = FlushState.PLANNED
        wait, loop = self.pause.next_flush_at - monotonic(), self._loop
        self._next_step = loop.call_later(wait, self._flush) if wait > 0 else loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Make the gathering wave due, and write the first slice."""
        self._state, self._next_step = FlushState.WRITING, None
        self.flushes += 1
        if self._gathering.groups:  # otherwise all that waits is due already
            self._due.append(self._gathering)
            self._gathering = Wave()
        self._write_slice()

    def _write_slice(self) -> None:
        """Write the first due wave, up to the end of the slice, and schedule the next step."""
        wave, started_at = self._due[0], monotonic()
        try:
            self._write_wave(wave)
        finally:  # an error costs the batch in which it occurred, and must not block all later batches
            self._flush_seconds += monotonic() - started_at
            if wave.oldest_ms != NO_ENTRY:
                self.times.end_slice(self._now_ms() - wave.oldest_ms)
            if not wave.groups:
                self._due.popleft()
            if self._due:
                self._next_step = self._loop.call_soon(self._write_slice)
            else:
                self._end_flush()
            if not wave.groups:
                for call in wave.calls:
                    call()

    def _end_flush(self) -> None:
        self.pause.end_flush(self._flush_seconds)
        self._flush_seconds = 0.0
        self._wrapped.clear()
        self._state, self._next_step = FlushState.IDLE, None
        if self._gathering.groups:
            self._plan()

    def _write_wave(self, wave: Wave) -> None:
        """Write what waits for the groups of a wave, up to the end of a slice.

        Each round of the loop serves the first group, in one of two ways: its only client gets the pending frames
        *alone*, without a batch, or the oldest batch is written. The group then leaves the wave. Only one whose batch
        has more clients than the slice has writes left stays for the next slice.

        The loop runs for every group, so the first way makes few calls.
        """
        groups, limits, writes_left = wave.groups, self._limits, MAX_SLICE_WRITES
        delivered = [0] * len(FILTER_KINDS)
        data: bytes | None = None  # what was written alone last; in most flushes all groups have the same single frame
        frame: bytes | None = None  # this frame, None if there were several
        wrap: WrapBytes | None = None  # what made `data` of it
        try:
            while groups and writes_left > 0:
                group = groups[0]
                members, frames = group.members, group.pending_frames
                events, writes, is_served = None, 1, True
                if frames and not group.sealed_batches and isinstance(members, tuple) and len(members) == 1:
                    if len(frames) > 1 or frames[0] is not frame or group.wrap is not wrap:
                        frame, wrap = frames[0] if len(frames) == 1 else None, group.wrap
                        data = self._wrap_alone(wrap, frames)
                    if data is not None and write_to_one(members, data, limits.warning_bytes):
                        events = group.end_pending()
                if events is None:
                    events, writes, is_served = self._write_batch(group, writes_left)
                delivered[group.filter_kind] += events
                writes_left -= writes
                if is_served:
                    groups.popleft()
        finally:
            for kind, events in enumerate(delivered):
                self.times.add(kind, events)

    def _wrap_alone(self, wrap: WrapBytes, frames: list[bytes]) -> bytes | None:
        """Return the bytes of frames for the sockets. None if there are too many for a client with unsent ones.

        None also after an error: the frames then become a batch, which finds the same error.
        """
        try:
            data = wrap_joined(wrap, frames, self._wrapped)
        except Exception:  # noqa: BLE001 - see above
            return None
        return data if len(data) <= self._max_alone_bytes else None

    def _write_batch(self, group: ClientGroup, max_writes: int) -> tuple[int, int, bool]:
        """Write the oldest batch of a group to its next clients. Without a batch, the pending frames become one.

        Return the number of delivered events, the number of writes, and whether no client of the batch is left.
        """
        if not group.sealed_batches:
            group.seal()
        if not group.sealed_batches:
            return 0, 0, True  # `flush_group` has written all that waited
        batch = group.sealed_batches[0]
        writes, events = group.write_oldest_batch(self._limits, max_writes, self._wrapped)
        return events, writes, not batch.remaining_count
