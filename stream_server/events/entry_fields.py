"""The JSON members of an entry that the server decodes; it ignores all other members.

``WireFields`` is the part that clients receive. ``EntryFacts`` is the part only for matching and other renderings.
"""

import msgspec


class MalformedEntry(ValueError):
    """Bytes from a channel or the log that are not a valid entry. The server counts and skips them."""


class MentionFields(msgspec.Struct):
    """A mention in a text; ``id`` is the user's id, None for a login without an account."""

    login: str
    indices: tuple[int, int]
    id: str | None = None


class TagFields(msgspec.Struct):
    """A hashtag or cashtag in a text."""

    text: str
    indices: tuple[int, int]


class UrlFields(msgspec.Struct):
    """A URL in a text, in the three forms that clients receive."""

    url: str
    display_url: str
    expanded_url: str
    indices: tuple[int, int]


class EntitiesFields(msgspec.Struct):
    """The entities of a text; indices are in code points."""

    mentions: list[MentionFields] = []
    hashtags: list[TagFields] = []
    cashtags: list[TagFields] = []
    urls: list[UrlFields] = []


class LocationFields(msgspec.Struct):
    """A point in degrees."""

    lon: float
    lat: float


class PlaceFields(msgspec.Struct):
    """A named place; ``box`` is west, south, east, north in degrees."""

    name: str | None = None
    country: str | None = None
    box: tuple[float, float, float, float] | None = None


class MediaFields(msgspec.Struct):
    """The type of one media attachment."""

    type: str


class StatusFields(msgspec.Struct):
    """The members of a status that filters use."""

    id: str
    uid: str
    login: str | None = None
    message: str = ""
    lang: str | None = None
    entities: EntitiesFields = msgspec.field(default_factory=EntitiesFields)
    location: LocationFields | None = None
    place: PlaceFields | None = None
    media: list[MediaFields] = []
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
    entities: EntitiesFields | None = None


class MessageFields(msgspec.Struct):
    """The sender of a direct message."""

    uid: str


class NotificationFields(msgspec.Struct):
    """A notification: the user who caused it, and the status or comment it is about."""

    source: UserFields
    status: StatusFields | None = None
    comment: CommentFields | None = None


class OwnerFields(msgspec.Struct):
    """The owner of a list or group."""

    uid: str


class WireFields(msgspec.Struct):
    """The decoded members of what clients receive. The kind of the entry determines which are present."""

    status: StatusFields | None = None
    source: UserFields | None = None
    target: UserFields | None = None
    user: UserFields | None = None
    comment: CommentFields | None = None
    message: MessageFields | None = None
    notification: NotificationFields | None = None
    group: OwnerFields | None = None
    listed: OwnerFields | None = msgspec.field(name="list", default=None)


class AuthorSnapshot(msgspec.Struct, frozen=True):
    """A user's public profile at the time of the post; ``signup`` is ISO 8601."""

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
    """Facts for matching and for the dialects that no native message contains.

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
