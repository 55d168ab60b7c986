"""The live clients with equal subscriptions and framings: one index entry, one list of frames, one joined write."""

from collections.abc import Hashable

from filters.subscription import Subscription
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.batch import Batch, Memberships
from stream_server.hub.delivery import Delivery, encode_matched
from stream_server.hub.framing import Framing, WrapBytes
from stream_server.hub.shared_history import MIN_SHARING_CLIENTS, SharedHistory
from stream_server.hub.visibility.private_view import PrivateView


class ClientGroup:
    """The live clients that share every frame, and the frames that wait for the next flush.

    Attributes:
        key: Key of the group (`Client.group_key`).
        private_view: The private view of its only client. None in a shared group, whose clients see the public view.
        is_impersonal: Whether all users receive the same entries: only those that every user may see.
        resume_position: Position before the first waiting frame, None if no frame waits. A client that cannot take the
            frames catches up from here.
        next_heartbeat_at: Time of the next heartbeat, in seconds of the event loop's clock.
    """

    __slots__ = (
        "_encode_entry", "_history", "_pending_control_count", "_reports_matches", "framing", "is_impersonal", "key",
        "memberships", "next_heartbeat_at", "pending_frames", "private_view", "resume_position", "subscription",
    )  # fmt: skip

    def __init__(
        self, key: Hashable, subscription: Subscription, framing: Framing, private_view: PrivateView | None
    ) -> None:
        self.key = key
        self.subscription = subscription
        self.framing = framing
        self._encode_entry = framing.encode_entry
        self._reports_matches = subscription.reports_matches
        self.private_view = private_view
        self.is_impersonal = subscription.viewer_independent
        self.memberships = Memberships()
        self.pending_frames: list[bytes] = []
        self._pending_control_count = 0
        self.resume_position: Position | None = None
        self.next_heartbeat_at = 0.0
        self._history = None if framing.wrap_after is None else SharedHistory(framing.wrap_after)

    def queue_entry(self, entry: Entry, previous_head: Position) -> bool:
        """Add an entry's frame. Return True if a flush must be scheduled. Raises `FilterFailure` if a filter raises."""
        matched = encode_matched(self.subscription, entry) if self._reports_matches else None
        frame = entry.frame(self._encode_entry, matched)
        if not frame:
            return False
        # `_queue_frame` without the call: this runs once per matching group and event.
        self.pending_frames.append(frame)
        if self.resume_position is not None:
            return False
        self.resume_position = previous_head
        return True

    def queue_delivery(self, delivery: Delivery, previous_head: Position) -> bool:
        """Add an entry's frame to a private group (one client). Return True if a flush must be scheduled."""
        return self._queue_frame(delivery.frame(self._encode_entry), previous_head)

    def queue_control_frame(self, frame: bytes, previous_head: Position) -> bool:
        """Add an encoded control message, unless it is empty. Return True if a flush must be scheduled."""
        self._pending_control_count += bool(frame)
        return self._queue_frame(frame, previous_head)

    def _queue_frame(self, frame: bytes, previous_head: Position) -> bool:
        if not frame:
            return False
        self.pending_frames.append(frame)
        if self.resume_position is not None:
            return False
        self.resume_position = previous_head
        return True

    def take_batch(self, wrapped_cache: dict[tuple[WrapBytes, bytes], bytes]) -> Batch:
        """Return the waiting frames as one batch for all present clients.

        ``wrapped_cache`` holds single frames that were wrapped for other groups of the same flush. At low rates most
        groups have one frame, and this frame is the same in all of them.
        """
        assert self.resume_position is not None
        frames, wrap, data = self.pending_frames, self.framing.wrap, None
        history = self._history if len(self.memberships) >= MIN_SHARING_CLIENTS else None
        if len(frames) == 1 and history is None:
            key = (wrap, frames[0])
            data = wrapped_cache.get(key) or wrapped_cache.setdefault(key, wrap(frames[0]))
        batch = Batch(self.memberships, wrap, frames, data, self.resume_position, history)
        batch.event_count -= self._pending_control_count
        self.memberships.batched += batch.event_count
        self.pending_frames = []
        self._pending_control_count = 0
        self.resume_position = None
        return batch
