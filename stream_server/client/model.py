"""The objects of the API as typed structs: statuses, users, lists and others. Unknown members are ignored."""

from datetime import datetime
from typing import Any

import msgspec

Span = tuple[int, int]
"""Start and end of a part of a text, in code points."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the objects. They cannot be changed, and two are equal if all of their members are."""


class Location(Model, frozen=True):
    """A point: longitude and latitude in degrees."""

    lon: float
    lat: float


class Place(Model, frozen=True):
    """A named place. ``box`` is west, south, east and north in degrees."""

    name: str | None = None
    country: str | None = None
    box: tuple[float, float, float, float] | None = None


class Mention(Model, frozen=True):
    """``@login`` in a text. ``id`` is None if no user had this login."""

    login: str
    indices: Span
    id: str | None = None


class Tag(Model, frozen=True):
    """A hashtag or cashtag in a text, without its sign."""

    text: str
    indices: Span


class Link(Model, frozen=True):
    """A link in a text: as written, as displayed and in full."""

    url: str
    display_url: str
    expanded_url: str
    indices: Span


class Entities(Model, frozen=True):
    """The mentions, tags and links that the server found in a text."""

    mentions: tuple[Mention, ...] = ()
    hashtags: tuple[Tag, ...] = ()
    cashtags: tuple[Tag, ...] = ()
    urls: tuple[Link, ...] = ()


class Media(Model, frozen=True):
    """An attachment of a status; ``type`` is ``image``, ``video``, ``gif`` or ``audio``."""

    url: str
    type: str


class Status(Model, frozen=True):
    """A status.

    Attributes:
        uid: The id of its author, and ``login`` the author's login.
        posted: When it was posted, with a time zone.
        lang: A BCP 47 tag, or ``und`` if the language is unknown.
        in_reply_to: The id of the status that this one answers; ``in_reply_to_uid`` is that status's author.
        origin: The id of the status that this one reposts or quotes. A repost has an empty ``message``.
        original: That status; None if it is deleted or hidden from the caller.
        group: The id of the group in which it was posted.
        conversation: The id of the first status of the thread.
        foreign_id: The status's id at the site from which it came, if any.
    """

    id: str
    uid: str
    login: str
    message: str
    posted: datetime
    location: Location | None = None
    place: Place | None = None
    lang: str = "und"
    entities: Entities = Entities()
    in_reply_to: str | None = None
    in_reply_to_uid: str | None = None
    origin: str | None = None
    original: "Status | None" = None
    media: tuple[Media, ...] = ()
    meta: dict[str, Any] | None = None
    group: str | None = None
    conversation: str | None = None
    likes: int = 0
    comments: int = 0
    reposts: int = 0
    foreign_id: str | None = None

    @property
    def text(self) -> str:
        """The message; for a repost, the message of the reposted status."""
        return self.message or (self.original.message if self.original is not None else "")


class Ids(Model, frozen=True):
    """The rest of a deleted object: its id, and the id of its author or owner."""

    id: str
    uid: str


class User(Model, frozen=True):
    """A user. ``email`` is there only for the caller's own user, and ``since`` only on pages of users.

    ``since`` is the time of the relation, such as when the user began to follow. ``foreign_id`` is the user's id at the
    site from which the user came.
    """

    id: str
    login: str
    name: str
    signup: datetime
    bio: str | None = None
    url: str | None = None
    place: str | None = None
    lang: str | None = None
    protected: bool = False
    followers: int = 0
    following: int = 0
    posts: int = 0
    email: str | None = None
    since: datetime | None = None
    foreign_id: str | None = None


class Comment(Model, frozen=True):
    """A comment under a status. ``status`` is the id of the status, ``uid`` and ``login`` are of the commenter."""

    id: str
    uid: str
    login: str
    status: str
    message: str
    posted: datetime
    entities: Entities = Entities()


class UserList(Model, frozen=True):
    """A list of users. ``uid`` is its owner, ``members`` the number of its members."""

    id: str
    uid: str
    name: str
    created: datetime
    description: str = ""
    private: bool = False
    members: int = 0


class Group(Model, frozen=True):
    """A group of users. ``kind`` is ``public``, ``private`` or ``announcement``; ``uid`` is its owner."""

    id: str
    uid: str
    name: str
    kind: str
    created: datetime
    description: str = ""
    members: int = 0


class TalkMessage(Model, frozen=True):
    """A direct message. ``talk`` is the id of its talk, ``uid`` and ``login`` are of the sender."""

    id: str
    talk: str
    uid: str
    login: str
    message: str
    posted: datetime


class Talk(Model, frozen=True):
    """A private conversation of the users ``people``. ``unread`` counts the messages after the caller's read mark."""

    id: str
    people: tuple[str, ...]
    created: datetime
    name: str | None = None
    unread: int = 0
    last_message: TalkMessage | None = None


class Notification(Model, frozen=True):
    """A notification: an action of another user (``source``), such as ``like``, ``reply`` or ``follow``."""

    id: str
    kind: str
    source: User
    posted: datetime
    read: bool = False
    status: Status | None = None
    comment: Comment | None = None


class Rule(Model, frozen=True):
    """A saved rule in canonical form. A dry run saves nothing, so its rules have neither ``id`` nor ``created``."""

    rule: str
    tag: str = ""
    id: str | None = None
    created: datetime | None = None


class ExplainedPart(Model, frozen=True):
    """One part of a rule: whether it matches, why, and where in the text. ``column`` counts code points from 1."""

    text: str
    column: int
    matched: bool
    why: str
    indices: tuple[Span, ...] = ()
    parts: "tuple[ExplainedPart, ...]" = ()


class Explanation(Model, frozen=True):
    """Whether a rule matches a status, and why. ``rule`` is its canonical text."""

    matched: bool
    rule: str
    parts: ExplainedPart


class MatchedPart(Model, frozen=True):
    """A part of a rule that matches a status, and where."""

    part: str
    indices: tuple[Span, ...] = ()


class PreviewExample(Model, frozen=True):
    """A status that a rule matches, and the parts that match it."""

    status: Status
    parts: tuple[MatchedPart, ...] = ()


class Preview(Model, frozen=True, rename={"start": "from", "end": "to"}):
    """The number of statuses from ``start`` to ``end`` that match a rule; ``complete`` if it is all the asked time."""

    matched: int
    scanned: int
    start: datetime
    end: datetime
    complete: bool
    per_minute: float
    examples: tuple[PreviewExample, ...] = ()


class Session(Model, frozen=True):
    """A log-in session. ``token`` lives for ``expires_in`` seconds; ``refresh_token`` works once."""

    token: str
    expires_in: int
    refresh_token: str
    user: User


class FollowState(Model, frozen=True):
    """Whether the caller follows a user. ``requested``: the user is protected and has not answered yet."""

    following: bool
    requested: bool = False


class Likes(Model, frozen=True):
    """Whether the caller likes a status now, and how many users like it."""

    liked: bool
    likes: int
