"""The objects of the API: statuses, users, lists and others. Unknown members are ignored."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, get_args

import msgspec
from msgspec import Meta

Id = Annotated[str, Meta(description="a decimal number", extra_json_schema={"pattern": "^[0-9]{1,20}$"})]
Login = Annotated[
    str, Meta(description="1 to 20 letters, digits or _", extra_json_schema={"pattern": "^[A-Za-z0-9_]{1,20}$"})
]
_FOREIGN = {"pattern": r"^[!#-+\--\[\]-~]{1,255}$"}
ForeignStatusId = Annotated[str, Meta(description="only of a status of another site", extra_json_schema=_FOREIGN)]
ForeignUserId = Annotated[str, Meta(description="only of a user of another site", extra_json_schema=_FOREIGN)]
Count = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
Timestamp = Annotated[datetime, Meta(tz=True, description="ISO 8601 in UTC, with milliseconds")]
Span = Annotated[tuple[Count, Count], Meta(description="start and end in the text, in code points")]

GroupKind = Literal["public", "private", "announcement"]
GROUP_KINDS_MEANING = (
    "public: everybody may read and join; private: only members see it, and the owner adds them; "
    "announcement: like public, but only the owner posts"
)


def _one_of(values: tuple[str, ...], description: str | None = None) -> Meta:
    """Return the annotation that makes the OpenAPI document list ``values`` as the possible values of a text."""
    return Meta(description=description, extra_json_schema={"enum": list(values)})


class Answer(msgspec.Struct, frozen=True):
    """Base of the objects. They cannot be changed, and two are equal if all of their members are.

    ``left_out`` names the members that the server may leave out. It sends all others always. A member that it may leave
    out is never null, except for those in ``null_too``.
    """

    left_out: ClassVar[frozenset[str]] = frozenset()
    null_too: ClassVar[frozenset[str]] = frozenset()


class Location(Answer, frozen=True):
    """A point on the Earth, longitude and latitude in degrees (WGS 84)."""

    lon: float
    lat: float


class Place(Answer, frozen=True, omit_defaults=True):
    """A named place. ``box`` is west, south, east, north in degrees. A box with west > east crosses longitude 180."""

    left_out: ClassVar[frozenset[str]] = frozenset({"country", "box"})

    name: str
    country: Annotated[str, Meta(description="an ISO 3166-1 alpha-2 country code")] | None = None
    box: tuple[float, float, float, float] | None = None


class Media(Answer, frozen=True):
    """A link to an image, a video or a sound. The server does not fetch it."""

    url: str
    type: Annotated[str, _one_of(("image", "video", "gif", "audio"))]


class MentionEntity(Answer, frozen=True):
    """``@login`` in a text; ``id`` is omitted if no user has this login."""

    left_out: ClassVar[frozenset[str]] = frozenset({"id"})

    login: str
    indices: Span
    id: Id | None = None


class TagEntity(Answer, frozen=True):
    """A hashtag ``#text`` or a cashtag ``$text`` in a text."""

    text: str
    indices: Span


class UrlEntity(Answer, frozen=True):
    """A link in a text: as written, as displayed and in full."""

    url: str
    display_url: str
    expanded_url: str
    indices: Span


class StatusEntities(Answer, frozen=True):
    """The mentions, tags and links that the server found in a text."""

    mentions: tuple[MentionEntity, ...] = ()
    hashtags: tuple[TagEntity, ...] = ()
    cashtags: tuple[TagEntity, ...] = ()
    urls: tuple[UrlEntity, ...] = ()


class EmbeddedStatus(Answer, frozen=True, kw_only=True):
    """The status that a repost or quote has as its ``original``. It does not contain an ``original`` itself.

    ``edits`` counts the edits, and ``edited`` is the time of the last. A status that was never edited has neither.
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"foreign_id", "edits", "edited"})

    id: Id
    uid: Annotated[Id, Meta(description="the author, whose login is `login`")]
    login: Login
    message: str
    posted: Timestamp
    edits: Count = 0
    edited: Timestamp | None = None
    location: Location | None = None
    place: Place | None = None
    lang: Annotated[str, Meta(description="a BCP 47 language tag, or `und` if the language is unknown")] = "und"
    entities: StatusEntities = StatusEntities()
    in_reply_to: Id | None = None
    in_reply_to_uid: Id | None = None
    origin: Annotated[Id, Meta(description="the status that this one reposts or quotes")] | None = None
    media: tuple[Media, ...] = ()
    meta: dict[str, Any] | None = None
    group: Id | None = None
    conversation: Annotated[Id, Meta(description="the first status of the thread")] = ""
    likes: Count = 0
    comments: Count = 0
    reposts: Count = 0
    foreign_id: ForeignStatusId | None = None

    @property
    def text(self) -> str:
        """The message; for a repost, the message of the reposted status."""
        return self.message


class Status(EmbeddedStatus, frozen=True, kw_only=True):
    """A status. ``original`` is the reposted or quoted status, or null if that is deleted or hidden from the caller."""

    left_out: ClassVar[frozenset[str]] = EmbeddedStatus.left_out | {"original"}
    null_too: ClassVar[frozenset[str]] = frozenset({"original"})

    original: EmbeddedStatus | None = None

    @property
    def text(self) -> str:
        """The message; for a repost, the message of the reposted status."""
        return self.message or (self.original.message if self.original is not None else "")


class Ids(Answer, frozen=True):
    """The rest of a deleted object: its id, and the id of its author or owner."""

    id: Id
    uid: Id
    deleted: bool = True


class DeletedComment(Ids, frozen=True):
    """The rest of a deleted comment: its ids, and the id of its status."""

    status: Id = ""


class DeletedUser(Answer, frozen=True):
    """The rest of a user whose account is deleted: its id, and the id that another site gave the user."""

    left_out: ClassVar[frozenset[str]] = frozenset({"foreign_id"})

    id: Id
    foreign_id: ForeignUserId | None = None
    deleted: bool = True


class User(Answer, frozen=True, kw_only=True):
    """A user, with the members that everybody may see."""

    left_out: ClassVar[frozenset[str]] = frozenset({"foreign_id"})

    id: Id
    login: Login
    name: str
    bio: str | None = None
    url: str | None = None
    place: str | None = None
    lang: str | None = None
    protected: bool = False
    followers: Count = 0
    following: Count = 0
    posts: Count = 0
    signup: Timestamp
    foreign_id: ForeignUserId | None = None


class OwnUser(User, frozen=True, kw_only=True):
    """The caller's own user, with the e-mail address, which is null for an account created without one."""

    email: str | None = None


class ListedUser(User, frozen=True, kw_only=True):
    """A user on a page of users. ``since`` is the time of the relation, such as when the user began to follow."""

    left_out: ClassVar[frozenset[str]] = User.left_out | {"since"}

    since: Annotated[datetime, Meta(tz=True, description="omitted if the list does not record it")] | None = None


class Comment(Answer, frozen=True):
    """A comment under a status. ``uid`` and ``login`` are of the commenter."""

    id: Id
    uid: Id
    login: Login
    status: Id
    message: str
    posted: Timestamp
    entities: StatusEntities = StatusEntities()


class List(Answer, frozen=True, kw_only=True):
    """A list of users. It has at most 5,000 members."""

    id: Id
    uid: Annotated[Id, Meta(description="the owner")]
    name: str
    description: str = ""
    private: bool = False
    members: Count = 0
    created: Timestamp


class Group(Answer, frozen=True, kw_only=True):
    """A group of users who post among themselves. It has at most 5,000 members, including its owner."""

    id: Id
    uid: Annotated[Id, Meta(description="the owner")]
    name: str
    kind: Annotated[str, _one_of(get_args(GroupKind), GROUP_KINDS_MEANING)]
    description: str = ""
    members: Count = 0
    created: Timestamp


class TalkMessage(Answer, frozen=True):
    """A message in a talk. Only the users in the talk see it. ``uid`` and ``login`` are of the sender."""

    id: Id
    talk: Id
    uid: Id
    login: Login
    message: str
    posted: Timestamp


class Talk(Answer, frozen=True, kw_only=True):
    """A private conversation. ``last_message`` is omitted if the talk has no message that the caller can see."""

    left_out: ClassVar[frozenset[str]] = frozenset({"last_message"})

    id: Id
    people: Annotated[tuple[Id, ...], Meta(description="all users in the talk, first the one who opened it")]
    name: str | None = None
    created: Timestamp
    unread: Annotated[
        int, Meta(description="messages behind the read mark, to 100", extra_json_schema={"minimum": 0, "maximum": 100})
    ] = 0
    last_message: TalkMessage | None = None


class Notification(Answer, frozen=True, kw_only=True):
    """An act of another user that concerns the caller, with the status or comment that it created or liked."""

    left_out: ClassVar[frozenset[str]] = frozenset({"status", "comment"})

    id: Id
    kind: Annotated[
        str, _one_of(("mention", "reply", "like", "comment", "repost", "quote", "follow", "request", "approve"))
    ]
    source: Annotated[User, Meta(description="the user who acted")]
    posted: Timestamp
    read: bool = False
    status: Status | None = None
    comment: Comment | None = None


class RuleAnswer(Answer, frozen=True, kw_only=True):
    """A rule in canonical form. The answer to a dry run has no ``id`` and ``created``, because nothing was saved."""

    left_out: ClassVar[frozenset[str]] = frozenset({"id", "created"})

    rule: str
    tag: Annotated[str, Meta(description="empty if the rule has no tag")] = ""
    id: Id | None = None
    created: Timestamp | None = None


class ExplainedPart(Answer, frozen=True):
    """A part of a rule: whether it matches a status, and why. A part that contains further parts has ``parts``."""

    left_out: ClassVar[frozenset[str]] = frozenset({"parts"})

    text: str
    column: Annotated[
        int, Meta(description="where it begins in the sent rule, in code points", extra_json_schema={"minimum": 1})
    ]
    matched: bool
    why: str
    indices: Annotated[tuple[Span, ...], Meta(description="where the part was found in the message")] = ()
    parts: "tuple[ExplainedPart, ...]" = ()


class RuleExplanation(Answer, frozen=True):
    """Whether the rule matches the status, and why."""

    matched: bool
    rule: Annotated[str, Meta(description="the canonical text of the rule")]
    parts: ExplainedPart


class MatchedPart(Answer, frozen=True):
    """A part of the rule that matches the status, and where the server found the part in the message."""

    part: str
    indices: tuple[Span, ...] = ()


class PreviewExample(Answer, frozen=True):
    """A status that the rule matches, the parts of the rule that match it, and the cursor behind it on the log."""

    status: Status
    parts: tuple[MatchedPart, ...] = ()
    cursor: str = ""


class RulePreviewResult(Answer, frozen=True, rename={"start": "from", "end": "to"}):
    """The number of statuses that the caller may see and that match a rule, from the time ``from`` to the time ``to``.

    ``complete`` means that the server scanned the whole requested time. ``examples`` has the latest ten matches.
    """

    matched: Count
    scanned: Annotated[int, Meta(description="entries of the log, of any kind", extra_json_schema={"minimum": 0})]
    start: Timestamp
    end: Timestamp
    complete: bool
    per_minute: Annotated[float, Meta(extra_json_schema={"minimum": 0})]
    examples: tuple[PreviewExample, ...] = ()


class Session(Answer, frozen=True, kw_only=True):
    """An access token, and a refresh token that a client exchanges once for a new pair of tokens."""

    token: Annotated[str, Meta(description="for `Authorization: Bearer`")]
    token_type: Annotated[str, _one_of(("Bearer",))] = "Bearer"  # noqa: S105 - a kind of tokens, not one
    expires_in: Annotated[int, Meta(description="seconds", extra_json_schema={"minimum": 1})]
    refresh_token: Annotated[str, Meta(description="valid for one `POST /v1/sessions`")]
    user: OwnUser


class FollowState(Answer, frozen=True):
    """Whether the caller follows the user. ``requested``: a protected user has not answered the caller's request."""

    following: bool
    requested: bool = False


class LikeCount(Answer, frozen=True):
    """The answer to a like or unlike: whether the caller likes the status now, and how many users like it."""

    liked: bool
    likes: Count
