"""The live clients with equal subscriptions and framings: one index entry, one list of frames, one joined write.

A `Batch` is one joined write to the clients of a group, in slices so that other tasks get their turn. `DeliveryTimes`
counts how long events take from the log to the sockets.
"""

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from filters.follow import Follow, Home
from filters.inverted_lists import CompactSet, with_item, without_item
from filters.rule import Rules, SavedRules
from filters.subscription import Subscription
from stream_server.events.position import Position
from stream_server.hub.client import Client
from stream_server.hub.messages import MIN_SHARING_CLIENTS, Framing, SharedHistory, WrapBytes
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.window import Window

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


WrappedFrames: TypeAlias = defaultdict[WrapBytes, dict[bytes, bytes]]
"""What each function made of single frames during one flush, by the frame.

At low rates most groups have one frame, and this frame is the same in all of them.
"""


def wrap_once(wrap: WrapBytes, frame: bytes, wrapped: WrappedFrames) -> bytes:
    """Return what ``wrap`` makes of a frame. ``wrapped`` has what it made before, and keeps the result."""
    known = wrapped[wrap]
    return known.get(frame) or known.setdefault(frame, wrap(frame))


def wrap_joined(wrap: WrapBytes, frames: Sequence[bytes], wrapped: WrappedFrames) -> bytes:
    """Return what ``wrap`` makes of frames that leave together. ``wrapped`` keeps the result of a single frame."""
    return wrap(b"".join(frames)) if len(frames) > 1 else wrap_once(wrap, frames[0], wrapped)


def write_to_one(only_client: tuple[Client], data: bytes, warning_bytes: int) -> bool:
    """Write to a client, unless it has more than ``warning_bytes`` unsent or an error. Return whether it was done."""
    try:
        for client in send_to_each(only_client, data):
            if client.buffered_bytes() > warning_bytes:
                return False
            client.write(data)
    except Exception:  # noqa: BLE001 - nothing was written, and the caller's batch finds the same error
        return False
    return True


class Batch:
    """Frames of a group, joined: the same bytes for each client that was in the group when the batch was sealed.

    Attributes:
        resume_position: Position before the first frame. A client that cannot take the batch catches up from here.
        event_count: Number of frames that are events. Control messages, such as heartbeats, do not count.
        batched_before: Number of events in the earlier batches of the group.
    """

    __slots__ = (
        "_data", "_frames", "_group", "_history", "_next_index", "_recipients", "_version", "batched_before",
        "event_count", "resume_position",
    )  # fmt: skip

    def __init__(self, group: "ClientGroup", resume_position: Position, event_count: int) -> None:
        """Take over what waits for the present clients of ``group``. ``event_count`` of its frames are events."""
        self.resume_position = resume_position
        self.event_count = event_count
        self.batched_before = group.batched
        self._group = group
        self._frames = tuple(group.pending_frames)
        self._recipients = group.snapshot()
        self._history = group.history if len(group.members) >= MIN_SHARING_CLIENTS else None
        self._data: bytes | None = None
        self._next_index = 0
        self._version = group.version

    @property
    def remaining_count(self) -> int:
        """Number of clients to which the batch was not written yet."""
        return len(self._recipients) - self._next_index

    def write_slice(self, limits: WriteLimits, max_writes: int, wrapped: WrappedFrames) -> int:
        """Write to the next ``max_writes`` clients. Return how many of them got the batch.

        Calls ``limits.on_overflow`` for each client without room. A client without unsent bytes always has room for a
        batch of one frame, even if it exceeds ``limits.max_bytes``.
        """
        recipients = self._recipients[self._next_index : self._next_index + max_writes]
        self._next_index += len(recipients)
        if self._group.version != self._version:  # a client that left and came back has read the frames already
            recipients = tuple(
                [
                    client
                    for client in recipients
                    if client.group is self._group and client.joined_version <= self._version
                ]
            )
        try:
            data = self._data or self._join(wrapped)
        except Exception:  # the frames are lost for these clients here, so let them catch up instead
            for client in recipients:
                limits.on_overflow(client, self)
            raise
        max_unsent = limits.max_bytes - len(data)
        if len(self._frames) == 1:
            max_unsent = max(max_unsent, 0)
        return self._write_to(recipients, data, min(max_unsent, limits.warning_bytes), max_unsent, limits)

    def _write_to(
        self, recipients: tuple[Client, ...], data: bytes, warning: float, max_unsent: float, limits: WriteLimits
    ) -> int:
        """Write ``data`` to each client with room, and return how many there were.

        The loop runs for every client, so it calls few functions.
        """
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
                        write(self._group.wrap(b"".join(self._frames)))
                    else:
                        write(data)
                    continue
            except RuntimeError:
                pass  # the transport is closed already; the clients after this one must still get their frames
            except Exception:
                logger.exception("writing to a client failed")  # must not cost the other clients their frames either
            limits.on_overflow(client, self)
            refused_count += 1
        return len(recipients) - refused_count

    def _join(self, wrapped: WrappedFrames) -> bytes:
        """Return the bytes for the sockets. Late, because groups share their frames, but not this copy."""
        if self._history is None:
            self._data = wrap_joined(self._group.wrap, self._frames, wrapped)
        else:
            self._data = self._history.wrap(b"".join(self._frames), self._version)
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


class ClientGroup:
    """The live clients that share every frame, and all that waits for them.

    What waits are the batches that are sealed and not written, and then the frames that are *pending*. The next frame
    joins the pending ones. They become a batch when they must not get more frames or more clients.

    Attributes:
        key: Key of the group (`Client.group_key`).
        subscription: The filters of its clients.
        framing: The format of its messages.
        encode_entry: Function of its framing that makes a frame of an entry.
        shared_framing: Its framing, if other groups may have the same frame of an entry. None if its frames report what
            has matched, or if it counts entries.
        wrap: Function of its framing that wraps one joined write for the sockets.
        history: The bytes that its clients have got, if its framing compresses with them.
        private_view: The private view of its only client. None in a shared group, whose clients see the public view.
        filter_kind: Kind of its filter, an index of :data:`FILTER_KINDS`.
        members: Its clients.
        version: Number of clients that have joined or left.
        batched: Number of events that were sealed or written. So the events of a client need no counting while it is
            live.
        sealed_batches: Its batches that are not written to all their clients yet, the oldest first.
        pending_frames: Its pending frames.
        resume_position: Position before the first pending frame, None if there is none. A client that cannot take the
            frames catches up from here.
        next_heartbeat_at: Time of the next heartbeat, in seconds of the event loop's clock.
        window: What the clients of a summary have in common: all that it has counted. None in other groups.
    """

    __slots__ = (
        "_pending_control_count", "_snapshot", "batched", "encode_entry", "filter_kind", "framing", "history", "key",
        "members", "next_heartbeat_at", "pending_frames", "private_view", "resume_position", "sealed_batches",
        "shared_framing", "subscription", "version", "window", "wrap",
    )  # fmt: skip

    def __init__(
        self, key: Hashable, subscription: Subscription, framing: Framing, private_view: PrivateView | None
    ) -> None:
        self.key = key
        self.subscription = subscription
        self.framing = framing
        self.encode_entry = framing.encode_entry
        self.shared_framing = None if subscription.reports_matches or framing.summary_ms else framing
        self.wrap = framing.wrap
        self.history = None if framing.wrap_after is None else SharedHistory(framing.wrap_after)
        self.private_view = private_view
        kinds = {_KIND_BY_NAME.get(base.name, _OTHER_KIND) for base in subscription.bases}
        self.filter_kind = kinds.pop() if len(kinds) == 1 else _COMBINED_KIND
        self.members: CompactSet[Client] = ()
        self._snapshot: tuple[Client, ...] | None = None
        self.version = self.batched = self._pending_control_count = 0
        self.sealed_batches: tuple[Batch, ...] = ()
        self.pending_frames: list[bytes] = []
        self.resume_position: Position | None = None
        self.next_heartbeat_at = 0.0
        self.window: Window | None = None

    def add(self, client: Client) -> None:
        """Make a client a member. It gets nothing that waits already."""
        if self.resume_position is not None:
            self.seal()
        self.version += 1
        self._snapshot = None
        self.members = with_item(self.members, client)
        client.group, client.joined_version, client.batched_before_joining = self, self.version, self.batched
        if client.sink is not None:
            client.sink.lend_descriptor(client)

    def remove(self, client: Client) -> None:
        """End the membership of a client. What waits for the last one is dropped."""
        self.version += 1
        self._snapshot = None
        self.members = without_item(self.members, client)
        client.group = None
        if client.sink is not None:
            client.sink.lend_descriptor(None)
        if not self.members:
            self.seal()
            self.sealed_batches = ()

    def snapshot(self) -> tuple[Client, ...]:
        """Return the present clients. The tuple is cached until a client joins or leaves."""
        if self._snapshot is None:
            self._snapshot = tuple(self.members)
        return self._snapshot

    def queue_frame(self, frame: bytes, previous_head: Position, *, is_control: bool = False) -> bool:
        """Add an encoded message to the pending frames. Return True if it is the first, which must be scheduled.

        An empty one is ignored: the framing has no form for the message. ``previous_head`` is the position before it.
        """
        if not frame:
            return False
        self.pending_frames.append(frame)
        self._pending_control_count += is_control
        if self.resume_position is not None:
            return False
        self.resume_position = previous_head
        return True

    def end_pending(self) -> int:
        """Leave no frame pending, because all were written or sealed. Return the number of events among them."""
        event_count = len(self.pending_frames) - self._pending_control_count
        self.batched += event_count
        self.pending_frames.clear()
        self.resume_position = None
        self._pending_control_count = 0
        return event_count

    def seal(self) -> None:
        """Make the pending frames, if there are any, a batch for the present clients."""
        if self.resume_position is not None:
            batch = Batch(self, self.resume_position, len(self.pending_frames) - self._pending_control_count)
            self.sealed_batches = (*self.sealed_batches, batch)
            self.end_pending()

    def write_oldest_batch(self, limits: WriteLimits, max_writes: int, wrapped: WrappedFrames) -> tuple[int, int]:
        """Write the oldest sealed batch to its next clients. Return the numbers of writes and of delivered events.

        Makes at most ``max_writes`` writes. The group forgets a batch that is written to all its clients. Raises what
        the function raises that wraps the frames.
        """
        batch = self.sealed_batches[0]
        writes = min(batch.remaining_count, max_writes)
        if writes == batch.remaining_count:
            self.sealed_batches = self.sealed_batches[1:]
        return writes, batch.event_count * batch.write_slice(limits, writes, wrapped)
