"""TODO."""

import msgspec


class MalformedEntry(ValueError):
    """Bytes on a channel or the log that are no entry of ours: counted and skipped, never fatal."""


class MentionFields(msgspec.Struct):
    login: str
    indices: tuple[int, int]
    id: str | None = None


class TagFields(msgspec.Struct):
    text: str
    indices: tuple[int, int]


class UrlFields(msgspec.Struct):
    url: str
    display_url: str
    expanded_url: str
    indices: tuple[int, int]


class EntitiesFields(msgspec.Struct):
    mentions: list[MentionFields] = []
    hashtags: list[TagFields] = []
    cashtags: list[TagFields] = []
    urls: list[UrlFields] = []


class LocationFields(msgspec.Struct):
    lon: float
    lat: float


class PlaceFields(msgspec.Struct):
    name: str | None = None
    country: str | None = None
    box: tuple[float, float, float, float] | None = None


class MediaFields(msgspec.Struct):
    type: str


class StatusFields(msgspec.Struct):
    """As much of a status as the filters look at."""

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
    id: str
    login: str | None = None


class CommentFields(msgspec.Struct):
    id: str
    uid: str
    login: str | None = None
    message: str = ""
    entities: EntitiesFields | None = None


class MessageFields(msgspec.Struct):
    uid: str


class NotificationFields(msgspec.Struct):
    source: UserFields
    status: StatusFields | None = None
    comment: CommentFields | None = None


class OwnerFields(msgspec.Struct):
    uid: str


class WireFields(msgspec.Struct):
    """As much of what clients get as is looked at here."""

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
    """A user as everybody saw them when they posted; ``signup`` is ISO 8601."""

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
    """What is for matching and for other renderings, and in no message of ours.

    ``status`` and ``comment`` are as they were, where what takes them back says the ids only. ``author`` is who wrote
    the status, ``original_author`` who wrote what it repeats or quotes, both as they were when it was posted;
    ``reply_to_login`` is the login of whom it answers.
    """

    status: StatusFields | None = None
    comment: CommentFields | None = None
    author: AuthorSnapshot | None = None
    original_author: AuthorSnapshot | None = None
    reply_to_login: str | None = None


NO_FACTS = EntryFacts()
