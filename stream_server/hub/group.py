"""The live clients that ask the same: one entry in the index, one list of frames, one joined write."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from filters.base import Failed, Filter
from filters.combine import Subscription
from stream_server.events import Encode, Entry, Position
from stream_server.hub.batch import Batch, Seat
from stream_server.hub.control import Control
from stream_server.hub.personal import Personal

if TYPE_CHECKING:
    from stream_server.hub.member import Member


class EncodeControl(Protocol):
    """How one control message becomes bytes; none at all where the protocol has no word for it."""

    def __call__(self, control: Control, /) -> bytes: ...


class Wrap(Protocol):
    """How a joined write becomes bytes on the socket (a chunk of HTTP/1.1, or nothing for 1.0)."""

    def __call__(self, data: bytes, /) -> bytes: ...


class Framing(NamedTuple):
    """One way of writing a stream; two clients with equal framings can share every byte."""

    name: str
    encode: Encode
    control: EncodeControl
    wrap: Wrap


class Group:
    """Its members, and the frames that wait for the next flush.

    ``personal`` is the view that its one member has of its own. Others share the view of everybody whom nothing
    personal concerns; ``impersonal`` says that they asked for what is the same for all, and given to all.
    ``since`` is the position before the first waiting frame: where a member that refuses them goes on.
    """

    __slots__ = (
        "_controls", "_encode", "_marks", "_seats", "beat_at", "frames", "framing", "impersonal", "key", "members",
        "personal", "since", "subscription", "version",
    )  # fmt: skip

    def __init__(self, key: Hashable, subscription: Subscription, framing: Framing, personal: Personal | None) -> None:
        self.key = key
        self.subscription = subscription
        self.framing = framing
        self._encode = framing.encode
        self._marks = subscription.marks
        self.personal = personal
        self.impersonal = subscription.impersonal
        self.members: dict[Member, None] = {}
        self.version = 0
        self._seats: tuple[Seat, ...] | None = None
        self.frames: list[bytes] = []
        self._controls = 0
        self.since: Position | None = None
        self.beat_at = 0.0

    def enter(self, member: "Member") -> None:
        """``member`` is live here from now on."""
        self.members[member] = None
        self._changed()

    def leave(self, member: "Member") -> None:
        """``member`` is not live here any more."""
        del self.members[member]
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._seats = None

    def offer(self, entry: Entry, before: Position) -> bool:
        """Let ``entry`` wait for the next flush; True if it is the first to wait. ``before`` is the head before it.

        Raises Failed where a filter that has to name what matched raises.
        """
        frame = entry.frame(self._encode, matched(self.subscription, entry) if self._marks else None)
        if not frame:
            return False
        self.frames.append(frame)  # as below, without a call: this runs once per matching group and event
        if self.since is not None:
            return False
        self.since = before
        return True

    def offer_frame(self, frame: bytes, before: Position) -> bool:
        """Let bytes that are no event wait for the next flush; True if they are the first. No bytes need not wait."""
        if not frame:
            return False
        self.frames.append(frame)
        self._controls += 1
        if self.since is not None:
            return False
        self.since = before
        return True

    def take(self, made: dict[tuple[Wrap, bytes], bytes]) -> Batch:
        """The waiting frames as one write to all present members.

        ``made`` holds what was wrapped for other groups of the same flush: at low rates most have one frame, the same.
        """
        assert self.since is not None
        frames, wrap, data = self.frames, self.framing.wrap, None
        if len(frames) == 1:
            key = (wrap, frames[0])
            data = made.get(key) or made.setdefault(key, wrap(frames[0]))
        if self._seats is None:
            self._seats = tuple(Seat(member.write, member.backlog, member) for member in self.members)
        batch = Batch(self, frames, data, self.since, self._seats)
        batch.events -= self._controls
        self.frames = []
        self._controls = 0
        self.since = None
        return batch


def matched(subscription: Subscription, entry: Entry) -> bytes | None:
    """``matched`` as JSON, None where the subscription's messages do not have it; raises Failed."""
    if not subscription.marks:
        return None
    try:
        return msgspec.json.encode(subscription.matched(entry.event))
    except Failed:
        raise
    except Exception as error:
        # A third party's filter says what is no JSON.
        raise Failed(_unsayable(subscription, entry), error) from error


def _unsayable(subscription: Subscription, entry: Entry) -> Filter:
    """The filter that says it."""
    for base in subscription.bases:
        try:
            msgspec.json.encode(subscription.marks_of(base, entry.event))
        except Exception:  # noqa: BLE001 - see above
            return base
    return subscription.bases[-1]
