"""The live clients that ask the same: one entry in the index, one list of frames, one joined write."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from filters.base import Filter, FilterFailure
from filters.subscription import Subscription
from stream_server.events.entry import EncodeEntry, Entry
from stream_server.events.position import Position
from stream_server.hub.batch import Batch, Recipient
from stream_server.hub.messages import ControlMessage
from stream_server.hub.visibility.private_view import PrivateView

if TYPE_CHECKING:
    from stream_server.hub.client import Client


class EncodeControl(Protocol):
    """How one control message becomes bytes; none at all where the protocol has no word for it."""

    def __call__(self, control: ControlMessage, /) -> bytes: ...


class WrapBytes(Protocol):
    """How a joined write becomes bytes on the socket (a chunk of HTTP/1.1, or nothing for 1.0)."""

    def __call__(self, data: bytes, /) -> bytes: ...


class Framing(NamedTuple):
    """One way of writing a stream; two clients with equal framings can share every byte."""

    name: str
    encode_entry: EncodeEntry
    encode_control: EncodeControl
    wrap: WrapBytes


class ClientGroup:
    """Its members, and the frames that wait for the next flush.

    ``private_view`` is the view that its one member has of its own. Others share the view of everybody whom nothing
    personal concerns; ``is_impersonal`` says that they asked for what is the same for all, and given to all.
    ``resume_position`` is the position before the first waiting frame: where a member that refuses them goes on.
    """

    __slots__ = (
        "_encode_entry", "_pending_control_count", "_recipients", "_reports_matches", "clients", "framing", "is_impersonal", "key", "membership_version", "next_heartbeat_at",
        "pending_frames", "private_view", "resume_position", "subscription",
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
        self.clients: dict[Client, None] = {}
        self.membership_version = 0
        self._recipients: tuple[Recipient, ...] | None = None
        self.pending_frames: list[bytes] = []
        self._pending_control_count = 0
        self.resume_position: Position | None = None
        self.next_heartbeat_at = 0.0

    def add_client(self, client: "Client") -> None:
        """``client`` is live here from now on."""
        self.clients[client] = None
        self._membership_changed()

    def remove_client(self, client: "Client") -> None:
        """``client`` is not live here any more."""
        del self.clients[client]
        self._membership_changed()

    def _membership_changed(self) -> None:
        self.membership_version += 1
        self._recipients = None

    def queue_entry(self, entry: Entry, previous_head: Position) -> bool:
        """Let ``entry`` wait for the next flush; True if it is the first to wait. ``previous_head`` is the head before it.

        Raises Failed where a filter that has to name what matched raises.
        """
        frame = entry.frame(
            self._encode_entry, encode_matched(self.subscription, entry) if self._reports_matches else None
        )
        if not frame:
            return False
        self.pending_frames.append(frame)  # as below, without a call: this runs once per matching group and event
        if self.resume_position is not None:
            return False
        self.resume_position = previous_head
        return True

    def queue_control_frame(self, frame: bytes, previous_head: Position) -> bool:
        """Let bytes that are no event wait for the next flush; True if they are the first. No bytes need not wait."""
        if not frame:
            return False
        self.pending_frames.append(frame)
        self._pending_control_count += 1
        if self.resume_position is not None:
            return False
        self.resume_position = previous_head
        return True

    def take_batch(self, wrapped_cache: dict[tuple[WrapBytes, bytes], bytes]) -> Batch:
        """The waiting frames as one write to all present members.

        ``wrapped_cache`` holds what was wrapped for other groups of the same flush: at low rates most have one frame, the same.
        """
        assert self.resume_position is not None
        frames, wrap, data = self.pending_frames, self.framing.wrap, None
        if len(frames) == 1:
            key = (wrap, frames[0])
            data = wrapped_cache.get(key) or wrapped_cache.setdefault(key, wrap(frames[0]))
        if self._recipients is None:
            self._recipients = tuple(Recipient(member.write, member.buffered_bytes, member) for member in self.clients)
        batch = Batch(self, frames, data, self.resume_position, self._recipients)
        batch.event_count -= self._pending_control_count
        self.pending_frames = []
        self._pending_control_count = 0
        self.resume_position = None
        return batch


def encode_matched(subscription: Subscription, entry: Entry) -> bytes | None:
    """``encode_matched`` as JSON, None where the subscription's messages do not have it; raises Failed."""
    if not subscription.reports_matches:
        return None
    try:
        return msgspec.json.encode(subscription.matched_items(entry.event))
    except FilterFailure:
        raise
    except Exception as error:
        # A third party's filter says what is no JSON.
        raise FilterFailure(_find_unencodable_filter(subscription, entry), error) from error


def _find_unencodable_filter(subscription: Subscription, entry: Entry) -> Filter:
    """The filter that says it."""
    for base in subscription.bases:
        try:
            msgspec.json.encode(subscription.base_matched_items(base, entry.event))
        except Exception:  # noqa: BLE001 - see above
            return base
    return subscription.bases[-1]
