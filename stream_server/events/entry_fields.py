"""The JSON members of a log entry that the server decodes. The server ignores all other members."""

import msgspec

from stream_server.wire.objects import Location, Media, Place, StatusEntities


class MalformedEntry(ValueError):
    """Raised for bytes from a Redis channel or the log that are not a valid entry. The server counts and skips them."""


class StatusFields(msgspec.Struct):
    """The members of a status that filters use. ``original`` is the status that this status reposts or quotes."""

    id: str
    uid: str
    login: str | None = None
    message: str = ""
    lang: str | None = None
    entities: StatusEntities = StatusEntities()
    location: Location | None = None
    place: Place | None = None
    media: tuple[Media, ...] = ()
    conversation: str | None = None
    in_reply_to_uid: str | None = None
    origin: str | None = None
    original: "StatusFields | None" = None


class UserFields(msgspec.Struct):
    """A user's id and login."""

    id: str
    login: str | None = None


class CommentFields(msgspec.Struct):
    """The members of a comment that filters use."""

    id: str
    uid: str
    login: str | None = None
    message: str = ""
    entities: StatusEntities | None = None


class OwnerFields(msgspec.Struct):
    """The user id (``uid``) of the sender of a direct message, or of the owner of a list or group."""

    uid: str


class NotificationFields(msgspec.Struct):
    """A notification: the user who caused it (``source``), and the status or comment that it reports."""

    source: UserFields
    status: StatusFields | None = None
    comment: CommentFields | None = None


class WireFields(msgspec.Struct):
    """The decoded members of the message that clients receive. The entry's kind determines which are present."""

    status: StatusFields | None = None
    source: UserFields | None = None
    target: UserFields | None = None
    user: UserFields | None = None
    comment: CommentFields | None = None
    message: OwnerFields | None = None
    notification: NotificationFields | None = None
    group: OwnerFields | None = None
    listed: OwnerFields | None = msgspec.field(name="list", default=None)


class AuthorSnapshot(msgspec.Struct, frozen=True):
    """An author's public profile when the status was posted. ``signup`` is the time of sign-up in ISO 8601."""

    id: str
    login: str
    name: str = ""
    bio: str | None = None
    url: str | None = None
    place: str | None = None
    lang: str | None = None
    protected: bool = False
    followers: int = 0
    following: int = 0
    posts: int = 0
    signup: str = ""


class EntryFacts(msgspec.Struct, frozen=True):
    """The part of a log entry that clients do not receive. Filters and the dialects (Twitter's formats) use it.

    Attributes:
        status: The status before its deletion, for a ``delete`` whose message has only ids.
        comment: The comment before its deletion, for an ``uncomment``.
        author: The author of the status at the time of the post.
        original_author: The author of the reposted or quoted status at the time of the post.
        reply_to_login: The login of the user to whom the status replies.
    """

    status: StatusFields | None = None
    comment: CommentFields | None = None
    author: AuthorSnapshot | None = None
    original_author: AuthorSnapshot | None = None
    reply_to_login: str | None = None


NO_FACTS = EntryFacts()
"""Facts of an entry that has none."""
