"""The messages of a stream as typed structs: events, and control messages about the stream itself."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from stream_server.wire.counts import RuleCount
from stream_server.wire.objects import (
    Answer,
    Comment,
    DeletedComment,
    DeletedUser,
    ForeignStatusId,
    Group,
    Id,
    Ids,
    List,
    Notification,
    Span,
    Status,
    TalkMessage,
    Timestamp,
    User,
)


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a stream.

    It is an instance of this class itself, and not of one below, if this client does not know its kind or the form of
    its members: so a newer server does not end the stream.

    As for an `Answer`, ``left_out`` names the members that the server may leave out. It sends all others always. Of
    ``alternatives`` it sends exactly one.

    Attributes:
        kind: ``post``, ``delete``, ``follow`` and so on.
        cursor: Position of the message. Pass it as ``since`` to resume after the message.
        at: Time of the message, with a time zone.
        matched: Which rules matched, and with ``explain`` also which filters and why. See ``docs/api.md``.
        raw: The JSON text as received.
    """

    is_control: ClassVar[bool] = False
    """Whether the message is about the stream itself, not about an event."""

    left_out: ClassVar[frozenset[str]] = frozenset({"matched"})
    alternatives: ClassVar[tuple[str, ...]] = ()
    null_too: ClassVar[frozenset[str]] = frozenset()

    kind: str
    cursor: str
    at: Timestamp
    matched: tuple[dict[str, Any], ...] = ()
    raw: bytes = msgspec.field(default=b"", name="(raw)")  # no member of the wire can have this name

    @property
    def data(self) -> dict[str, Any]:
        """The whole JSON object, decoded at each access."""
        return msgspec.json.decode(self.raw, type=dict[str, Any])

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags, or else the ids, of the rules that matched."""
        return tuple(str(item.get("tag") or item["id"]) for item in self.matched if "id" in item)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The places where the text matched, in code points, in ascending order. Needs ``explain=True``."""
        parts = (part for item in self.matched for part in (item, *_dicts(item.get("parts"))))
        return tuple(sorted({span for part in parts for span in _spans(part.get("indices"))}))

    def age_seconds(self, now: datetime | None = None) -> float:
        """Return the seconds from ``at`` to ``now`` (default: this machine's clock); 0 if ``at`` is later."""
        return max(0.0, ((now or datetime.now(UTC)) - self.at).total_seconds())


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else iter(())


def _spans(value: object) -> Iterator[Span]:
    """Yield the pairs of integers in a list; a plug-in's filter may have put anything there."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, list) and len(each) == 2 and all(isinstance(end, int) for end in each):
            yield each[0], each[1]


class Post(Event, frozen=True):
    """A new status: also a reply, a repost or a quote."""

    status: Status


class Delete(Event, frozen=True):
    """A status was deleted. Only its ids are left."""

    status: Ids


class LeftStatus(Answer, frozen=True):
    """The ids of an edited status that a stream does not show any more."""

    left_out: ClassVar[frozenset[str]] = frozenset({"foreign_id"})

    id: Id
    uid: Id
    foreign_id: ForeignStatusId | None = None


class Edit(Event, frozen=True):
    """A status was edited. It has ``status``, the new version, or ``left``.

    ``left`` has the ids of a status whose old version this stream may have had, and which no longer matches its
    filters, or is hidden from its user now. Forget what you have of it.
    """

    alternatives: ClassVar[tuple[str, ...]] = ("status", "left")
    left_out: ClassVar[frozenset[str]] = Event.left_out | {*alternatives}

    status: Status | None = None
    left: LeftStatus | None = None


class Relation(Event, frozen=True):
    """``source`` began or ended a relation to ``target``: ``block``, ``mute``, ``request`` and their ends."""

    source: User
    target: User


class Follow(Relation, frozen=True):
    """``source`` follows ``target`` now."""


class Unfollow(Relation, frozen=True):
    """``source`` no longer follows ``target``."""


class Like(Event, frozen=True):
    """A like of a status by the user ``source``."""

    source: User
    status: Status


class Unlike(Event, frozen=True):
    """``source`` no longer likes the status."""

    source: User
    status: Status


class Commented(Event, frozen=True):
    """A user commented on the status."""

    comment: Comment
    status: Status


class Uncommented(Event, frozen=True):
    """A comment was deleted. ``data`` may hold more than the ids."""

    comment: DeletedComment
    status: Ids


class UserChange(Event, frozen=True):
    """A user changed the profile (``user_update``) or its visibility (``protect``, ``unprotect``)."""

    user: User


class UserDeleted(Event, frozen=True):
    """A user's account was deleted, with all that the user wrote. Only the ids are left."""

    user: DeletedUser


class DirectMessage(Event, frozen=True):
    """A message in one of the caller's talks. Only ``user_stream`` has it, like all events below."""

    message: TalkMessage


class Notified(Event, frozen=True):
    """A notification for the caller."""

    notification: Notification


class ListChange(Event, frozen=True, rename={"listed": "list"}):
    """A list of the caller was created or updated, or got or lost the member ``user``."""

    left_out: ClassVar[frozenset[str]] = Event.left_out | {"user"}

    listed: List
    user: User | None = None


class ListDeleted(Event, frozen=True, rename={"listed": "list"}):
    """A list of the caller was deleted. Only its ids are left."""

    listed: Ids


class GroupChange(Event, frozen=True):
    """A group of the caller was created or updated, or ``user`` joined or left it."""

    left_out: ClassVar[frozenset[str]] = Event.left_out | {"user"}

    group: Group
    user: User | None = None


class GroupDeleted(Event, frozen=True):
    """A group of the caller was deleted. Only its ids are left."""

    group: Ids


class Summary(Event, frozen=True, rename={"start": "from", "end": "to"}):
    """The counts of a stream with ``summary``, for one period or a part of it.

    Attributes:
        start: Cursor after which it counts: that of the last message, or of the stream's start.
        end: Cursor up to which it counts.
        began: Begin of the period.
        ended: End of the period.
        count: Number of events.
        counts: Number of events that each rule matched, without the rules that matched none.
    """

    start: str
    end: str
    began: datetime
    ended: datetime
    count: int
    counts: tuple[RuleCount, ...] = ()


class Control(Event, frozen=True):
    """Base of the messages about the stream itself."""

    is_control: ClassVar[bool] = True


class Hello(Control, frozen=True):
    """The first message of a connection. ``connection`` is its id, ``server`` the server's name and version.

    ``heartbeat_seconds`` is the time between two heartbeats of the connection.
    """

    connection: str
    limits: dict[str, Any] = {}
    heartbeat_seconds: float = 15
    server: str = ""


class Heartbeat(Control, frozen=True):
    """Comes every 15 seconds by default. ``lag_ms`` is how far the server is behind the log."""

    lag_ms: float = 0


class Gap(Control, frozen=True, rename={"start": "from", "end": "to"}):
    """Entries that the server cannot deliver. A stream always yields it.

    Attributes:
        start: Cursor after which the gap begins; None if unknown.
        end: Cursor at which the gap ends.
        reason: ``trimmed``, ``rolled_back``, ``unknown_position`` or ``rules_forgotten``, see ``docs/api.md``.
        count: Number of missing entries of all kinds; None if unknown.
    """

    start: str | None = None
    end: str | None = None
    reason: str = ""
    count: int | None = None


class Effective(Control, frozen=True):
    """Other filters apply from here on.

    The caller's saved rules changed: ids ``added`` and ``removed``, and the number of ``rules`` now. Or the stream was
    updated by WebSocket: ``parameters`` are its filters now, as a query, and ``id`` is that of the update.
    """

    left_out: ClassVar[frozenset[str]] = Event.left_out | {"added", "removed", "rules", "parameters", "id"}

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rules: int | None = None
    parameters: str | None = None
    id: str | int | None = None


class StreamWarning(Control, frozen=True):
    """A problem of the stream, such as ``falling_behind`` with the ``percent`` of its unsent bytes."""

    left_out: ClassVar[frozenset[str]] = Event.left_out | {"percent", "filter", "rule", "terms", "message"}

    code: str = ""
    percent: float | None = None
    filter: str | None = None
    rule: str | None = None
    terms: tuple[str, ...] = ()
    message: str = ""


class Goodbye(Control, frozen=True):
    """The end of a connection. The client reconnects after ``retry_after`` seconds, unless that is None."""

    code: str = ""
    reason: str = ""
    retry_after: float | None = None


EVENT_TYPES: dict[str, type[Event]] = {
    "post": Post,
    "edit": Edit,
    "delete": Delete,
    "follow": Follow,
    "unfollow": Unfollow,
    "like": Like,
    "unlike": Unlike,
    "comment": Commented,
    "uncomment": Uncommented,
    "message": DirectMessage,
    "notification": Notified,
    "user_delete": UserDeleted,
    "list_delete": ListDeleted,
    "group_delete": GroupDeleted,
    "count": Summary,
    "hello": Hello,
    "heartbeat": Heartbeat,
    "gap": Gap,
    "effective": Effective,
    "warning": StreamWarning,
    "goodbye": Goodbye,
    **dict.fromkeys(("request", "unrequest", "block", "unblock", "mute", "unmute"), Relation),
    **dict.fromkeys(("user_update", "protect", "unprotect"), UserChange),
    **dict.fromkeys(("list_create", "list_update", "list_add", "list_remove"), ListChange),
    **dict.fromkeys(("group_create", "group_update", "group_join", "group_leave"), GroupChange),
}
"""The class of each kind of message."""
