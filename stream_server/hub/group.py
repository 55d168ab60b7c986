"""The live clients with equal subscriptions and framings: one index entry, one list of frames, one joined write.

A `Batch` is one joined write to the clients of a group, in slices so that other tasks get their turn. A `Wave` is the
groups whose frames are written before those of the next wave. `DeliveryTimes` counts how long events take from the log
to the sockets.
"""

import logging
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from filters.follow import Follow, Home
from filters.inverted_lists import CompactSet, with_item, without_item
from filters.rule import Rules, SavedRules
from filters.subscription import Subscription
from stream_server.events.position import Position
from stream_server.hub.client import Client
from stream_server.hub.messages import MIN_SHARING_CLIENTS, Framing, SharedHistory, WrapBytes
from stream_server.hub.visibility.private_view import PrivateView

SendToEach: TypeAlias = Callable[[tuple[Client, ...], bytes], Sequence[Client]]
"""Sends to those of the clients that have nothing unsent, and returns the others, to which no byte was sent."""


def leave_to_python(clients: tuple[Client, ...], data: bytes) -> Sequence[Client]:  # noqa: ARG001 - see `SendToEach`
    """Send to no client."""
    return clients


send_to_each: SendToEach
try:
    from stream_server.hub.send_to_each import send_to_each
except ImportError:  # there was no compiler
    send_to_each = leave_to_python

logger = logging.getLogger(__name__)


class WriteLimits(NamedTuple):
    """The limits of unsent bytes of one live client, and the callbacks for a client that exceeds them.

    Attributes:
        warning_bytes: Up to this many unsent bytes, a batch is written to the client without further checks.
        max_bytes: Most unsent bytes, including the batch that is about to be written.
        on_slow: Called with client, resume position and unsent bytes when a client has more than `warning_bytes`.
            Returns whether it wrote something to the client.
        on_overflow: Called with client and batch when a client has no room for the batch, or its transport is closed.
    """

    warning_bytes: int
    max_bytes: int
    on_slow: Callable[[Client, Position, float], bool]
    on_overflow: "Callable[[Client, Batch], None]"


class Members(Protocol):
    """The part of a `ClientGroup` that its batches use."""

    version: int
    batched: int
    filter_kind: int

    def snapshot(self) -> tuple[Client, ...]:
        """Return the present clients."""


class Batch:
    """A group's joined frames: the same bytes for each client that has been in the group since the batch was made.

    Attributes:
        group: The group.
        resume_position: Position before the first frame. A client that cannot take the batch catches up from here.
        event_count: Number of frames that are events. Control messages, such as heartbeats, do not count.
        batched_before: Number of events in the earlier batches of the group.
        served_count: Number of clients to which the batch was written so far.
        wave: The wave to which the batch belongs.
    """

    __slots__ = (
        "_data", "_frames", "_history", "_next_index", "_recipients", "_version", "_wrap", "batched_before",
        "event_count", "group", "resume_position", "served_count", "wave",
    )  # fmt: skip

    def __init__(
        self, group: Members, wrap: WrapBytes, frames: list[bytes], control_count: int, data: bytes | None,
        resume: Position, wave: "Wave", history: SharedHistory | None = None,
    ) -> None:  # fmt: skip
        """``data`` are the joined and wrapped frames, if they are known. ``history`` is the group's, if it has one.

        ``control_count`` of the frames are control messages.
        """
        self.group = group
        self.resume_position = resume
        self.event_count = len(frames) - control_count
        self.batched_before = group.batched
        self.served_count = 0
        self.wave = wave
        self._frames = frames
        self._wrap = wrap
        self._history = history
        self._data = data
        self._recipients = group.snapshot()
        self._next_index = 0
        self._version = group.version

    @property
    def remaining_count(self) -> int:
        return len(self._recipients) - self._next_index

    def write_slice(self, limits: WriteLimits, max_writes: int) -> None:
        """Write to the next ``max_writes`` clients. Call ``limits.on_overflow`` for each client without room.

        A client without unsent bytes always has room for a batch of one frame, even if it exceeds ``limits.max_bytes``.
        """
        recipients = self._recipients[self._next_index : self._next_index + max_writes]
        self._next_index += len(recipients)
        if self.group.version != self._version:  # a client that left and came back has read the frames already
            recipients = tuple(
                client for client in recipients if client.group is self.group and client.joined_version <= self._version
            )
        try:
            data = self._data or self._join()
        except Exception:  # the frames are lost for these clients here, so let them catch up instead
            for client in recipients:
                limits.on_overflow(client, self)
            raise
        max_unsent = limits.max_bytes - len(data)
        if len(self._frames) == 1:
            max_unsent = max(max_unsent, 0)
        self._write_to(recipients, data, min(max_unsent, limits.warning_bytes), max_unsent, limits)

    def _write_to(
        self, recipients: tuple[Client, ...], data: bytes, warning: float, max_unsent: float, limits: WriteLimits
    ) -> None:
        """Write ``data`` to each client with room. The loop runs for every client, so it calls few functions."""
        refused_count = 0
        for client in send_to_each(recipients, data) if warning >= 0 else recipients:
            try:
                buffered_bytes, write = client.buffered_bytes, client.write  # calls of methods would take longer
                unsent = buffered_bytes()
                if unsent <= warning:
                    write(data)
                    continue
                if unsent <= max_unsent:
                    if limits.on_slow(client, self.resume_position, unsent) and self._history is not None:
                        self._history.forget()  # the client has just got a message of its own
                        write(self._wrap(b"".join(self._frames)))
                    else:
                        write(data)
                    continue
            except RuntimeError:
                pass  # the transport is closed already; the clients after this one must still get their frames
            except Exception:
                logger.exception("writing to a client failed")  # must not cost the other clients their frames either
            limits.on_overflow(client, self)
            refused_count += 1
        self.served_count += len(recipients) - refused_count

    def _join(self) -> bytes:
        joined = b"".join(self._frames)  # as late as possible: groups share frames, but not this copy
        self._data = self._wrap(joined) if self._history is None else self._history.wrap(joined, self._version)
        return self._data


COMBINED, OTHER = "combined", "other"
"""Instead of the name of a filter: several filters in one subscription, and the filters of plug-ins."""

FILTER_KINDS = ("track", Follow.name, "locations", Rules.name, "sample", "firehose", "user", COMBINED, OTHER)

BUCKET_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram's buckets in seconds. Longer times are in one more."""

_KIND_BY_NAME = {name: kind for kind, name in enumerate(FILTER_KINDS)}
_COMBINED_KIND, _OTHER_KIND = _KIND_BY_NAME[COMBINED], _KIND_BY_NAME[OTHER]
_KIND_BY_NAME |= {Home.name: _KIND_BY_NAME["user"], SavedRules.name: _KIND_BY_NAME[Rules.name]}


class DeliveryTimes:
    """The histograms of all kinds of filters.

    ``delivered`` is the number of events written to clients, once for each client, also to clients that catch up. The
    histograms have only those of live clients.
    """

    __slots__ = ("_counts", "_events", "_sums", "delivered")

    def __init__(self) -> None:
        self.delivered = 0
        self._events: dict[int, int] = {}
        self._counts = [[0] * (len(BUCKET_SECONDS) + 1) for _ in FILTER_KINDS]
        self._sums = [0.0] * len(FILTER_KINDS)

    def add(self, kind: int, events: int) -> None:
        """Count ``events`` deliveries to clients with filters of one kind. Their time comes with :meth:`end_slice`."""
        if events:
            self.delivered += events
            self._events[kind] = self._events.get(kind, 0) + events

    def end_slice(self, age_ms: float) -> None:
        """Add the deliveries counted since the last call to the histograms, all with the time ``age_ms`` (ms)."""
        if not self._events:
            return
        seconds = age_ms / 1000 if age_ms > 0 else 0.0
        bucket = bisect_left(BUCKET_SECONDS, seconds)
        for kind, count in self._events.items():
            self._counts[kind][bucket] += count
            self._sums[kind] += count * seconds
        self._events.clear()

    def histograms(self) -> Iterator[tuple[str, list[int], float]]:
        """Yield each kind of filter, the counts of its buckets (the last one is unbounded), and the sum of seconds."""
        yield from zip(FILTER_KINDS, self._counts, self._sums, strict=True)


WrappedFrames: TypeAlias = defaultdict[WrapBytes, dict[bytes, bytes]]
"""What each function made of single frames during one flush, by the frame.

At low rates most groups have one frame, and this frame is the same in all of them.
"""


def wrap_once(wrap: WrapBytes, frame: bytes, wrapped: WrappedFrames) -> bytes:
    """Return what ``wrap`` makes of a frame. ``wrapped`` has what it made before, and keeps the result."""
    known = wrapped[wrap]
    return known.get(frame) or known.setdefault(frame, wrap(frame))


def write_to_one(client: Client, data: bytes, warning_bytes: int) -> bool:
    """Write to a client, unless it has more than ``warning_bytes`` unsent or an error. Return whether it was done."""
    try:
        if send_to_each((client,), data):
            if client.buffered_bytes() > warning_bytes:
                return False
            client.write(data)
    except Exception:  # noqa: BLE001 - nothing was written, and the caller's batch finds the same error
        return False
    return True


class ClientGroup:
    """The live clients that share every frame, and the frames that wait for the next flush.

    Attributes:
        key: Key of the group (`Client.group_key`).
        shared_framing: The format of its messages. None if they report matches, which other groups do not share.
        private_view: The private view of its only client. None in a shared group, whose clients see the public view.
        filter_kind: Kind of its filter, an index of :data:`FILTER_KINDS`.
        members: Its clients.
        version: Number of clients that have joined or left.
        batched: Number of events in all its batches. So the events of a client need no counting while it is live.
        resume_position: Position before the first waiting frame, None if no frame waits. A client that cannot take the
            frames catches up from here.
        next_heartbeat_at: Time of the next heartbeat, in seconds of the event loop's clock.
    """

    __slots__ = (
        "_history", "_pending_control_count", "_snapshot", "_wrap", "batched", "encode_entry", "filter_kind", "framing",
        "key", "members", "next_heartbeat_at", "pending_frames", "private_view", "resume_position", "shared_framing",
        "subscription", "version",
    )  # fmt: skip

    def __init__(
        self, key: Hashable, subscription: Subscription, framing: Framing, private_view: PrivateView | None
    ) -> None:
        self.key = key
        self.subscription = subscription
        self.framing = framing
        self.encode_entry = framing.encode_entry
        self.shared_framing = None if subscription.reports_matches else framing
        self._wrap = framing.wrap
        self.private_view = private_view
        kinds = {_KIND_BY_NAME.get(base.name, _OTHER_KIND) for base in subscription.bases}
        self.filter_kind = kinds.pop() if len(kinds) == 1 else _COMBINED_KIND
        self.members: CompactSet[Client] = ()
        self._snapshot: tuple[Client, ...] | None = None
        self.version = self.batched = self._pending_control_count = 0
        self.pending_frames: list[bytes] = []
        self.resume_position: Position | None = None
        self.next_heartbeat_at = 0.0
        self._history = None if framing.wrap_after is None else SharedHistory(framing.wrap_after)

    def add(self, client: Client) -> None:
        """Make a client a member. The frames that wait must be in a batch already, or the client would get them."""
        self.version += 1
        self._snapshot = None
        self.members = with_item(self.members, client)
        client.group, client.joined_version, client.batched_before_joining = self, self.version, self.batched
        if client.sink is not None:
            client.sink.lend_descriptor(client)

    def remove(self, client: Client) -> None:
        """End the membership of a client."""
        self.version += 1
        self._snapshot = None
        self.members = without_item(self.members, client)
        client.group = None
        if client.sink is not None:
            client.sink.lend_descriptor(None)

    def snapshot(self) -> tuple[Client, ...]:
        """Return the present clients. The tuple is cached until a client joins or leaves."""
        if self._snapshot is None:
            self._snapshot = tuple(self.members)
        return self._snapshot

    def queue_control_frame(self, frame: bytes, previous_head: Position) -> bool:
        """Add an encoded control message, unless it is empty. Return True if a flush must be scheduled."""
        self._pending_control_count += bool(frame)
        return self.queue_frame(frame, previous_head)

    def queue_frame(self, frame: bytes, previous_head: Position) -> bool:
        """Add the frame of an entry, unless it is empty. Return True if a flush must be scheduled."""
        if not frame:
            return False
        self.pending_frames.append(frame)
        if self.resume_position is not None:
            return False
        self.resume_position = previous_head
        return True

    def write_to_only_member(self, warning_bytes: int, most_bytes: int, wrapped: WrappedFrames) -> int | None:
        """Write the waiting frames to the only client of the group. Return the number of events among them.

        The client may have ``warning_bytes`` unsent (see `WriteLimits`), and the frames may have ``most_bytes``.
        Returns None and leaves the frames if there are several clients, or if the client has many unsent bytes or a
        closed transport. The caller then uses a batch. This runs for every client and flush, so it makes few calls.
        """
        members, frames = self.members, self.pending_frames
        if len(members) != 1:
            return None
        (client,) = members
        try:
            data = self._wrap(b"".join(frames)) if len(frames) > 1 else wrap_once(self._wrap, frames[0], wrapped)
        except Exception:  # noqa: BLE001 - nothing was written, and the batch finds the same error
            return None
        if len(data) > most_bytes or not write_to_one(client, data, warning_bytes):
            return None
        event_count = len(frames) - self._pending_control_count
        self.batched += event_count
        frames.clear()
        self.resume_position = None
        self._pending_control_count = 0
        return event_count

    def take_batch(self, wave: "Wave", wrapped: WrappedFrames) -> Batch:
        """Return the waiting frames as one batch of ``wave`` for all present clients."""
        assert self.resume_position is not None
        frames = self.pending_frames
        history = self._history if len(self.members) >= MIN_SHARING_CLIENTS else None
        data = None
        if len(frames) == 1 and history is None:
            data = wrap_once(self._wrap, frames[0], wrapped)
        batch = Batch(self, self._wrap, frames, self._pending_control_count, data, self.resume_position, wave, history)
        self.batched += batch.event_count
        self.pending_frames = []
        self.resume_position = None
        self._pending_control_count = 0
        return batch


NO_ENTRY = sys.maxsize
"""Instead of the time of the oldest entry of a wave: the wave has none."""


class Wave:
    """A part of a burst: the groups whose frames are written to all their clients before those of the next wave.

    Attributes:
        number: Waves are counted from 1. The wave 0 is empty.
        groups: The groups whose frames wait and are no batch yet, in the order of their first frames.
        entry_bytes: Memory of its entries in bytes, which is more than their frames take.
        oldest_ms: Time of its oldest entry that a group waits with, in ms since 1970.
        calls: What is called when the frames of this wave, and of all before it, are written.
    """

    __slots__ = ("calls", "entry_bytes", "groups", "number", "oldest_ms")

    def __init__(self, number: int) -> None:
        self.number = number
        self.groups: dict[ClientGroup, None] = {}
        self.entry_bytes = 0
        self.oldest_ms = NO_ENTRY
        self.calls: list[Callable[[], None]] = []
