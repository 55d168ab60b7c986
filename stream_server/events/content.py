"""Builds the content of a log entry: the ``Event`` that filters match, and the ids that visibility checks need.

One table maps each kind of entry to the function that builds its content. This function decides which user acted, which
users ``follow`` finds, which text ``track`` searches, and by which status id ``sample`` decides. The server
decodes the JSON members of an entry that are fields here, and ignores all others.
"""

from collections.abc import Callable
from itertools import compress, product

import msgspec

from filters.entities import NO_ENTITIES, Cashtag, Entities, Hashtag, Mention, Url, extract_entities
from filters.event import NO_META, Event
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
    meta: msgspec.Raw = msgspec.Raw(NO_META)
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
        status: The status before its deletion, for a ``delete`` whose message has only ids. Also the replaced version,
            for the form of an ``edit`` that has only ids.
        comment: The comment before its deletion, for an ``uncomment``.
        author: The author of the status at the time of the post.
        original_author: The author of the reposted or quoted status at the time of the post.
        reply_to_login: The login of the user to whom the status replies.
        before: Earlier versions of the status: of an ``edit`` the one that it replaces, of a ``delete`` all but the
            last one. Filters that match one of them have found the status.
        open_times: Of the removal of a comment or a repost for the followers of one of the two users whom it shows: the
            periods in which the other one was not protected, as pairs of the ids made at begin and end. The end is None
            if the period lasts. None in the place of the periods if the other one was never protected since.
    """

    status: StatusFields | None = None
    comment: CommentFields | None = None
    author: AuthorSnapshot | None = None
    original_author: AuthorSnapshot | None = None
    reply_to_login: str | None = None
    before: tuple[StatusFields, ...] = ()
    open_times: tuple[tuple[int, int | None], ...] | None = None


NO_FACTS = EntryFacts()
"""Facts of an entry that has none."""


_NO_MEDIA: frozenset[str] = frozenset()

_FORMS = {
    applies: frozenset(compress(("reply", "repost", "quote"), applies)) for applies in product((False, True), repeat=3)
}
"""The names of a status's forms, by whether it is a reply, a repost and a quote. All eight sets exist once."""


class ShownIds(msgspec.Struct, frozen=True, gc=False):
    """Ids of the status, the comment, and the reposted or quoted status whose text an entry shows. None if absent.

    A replay omits each entry whose status or comment is deleted, and not only the `post` of a deleted status: the
    entries of likes and comments contain the text too. A comment's entry has both ids, because deleting a status
    deletes its comments too.
    """

    status: str | None = None
    comment: str | None = None
    original: str | None = None


NOTHING_SHOWN = ShownIds()
"""The value for an entry that shows no text."""


class EntryContent(msgspec.Struct, frozen=True, gc=False):
    """The content of an entry, as filters and visibility checks use it.

    Attributes:
        event: The content that filters match.
        actors: Ids of the users whose words or actions the entry shows.
        quoted_author: Id of the author of the quoted status; None if the entry quotes none.
        subject_id: Id of the status or comment that the entry creates or deletes.
    """

    event: Event
    actors: frozenset[str]
    quoted_author: str | None = None
    subject_id: str | None = None
    shown_ids: ShownIds = NOTHING_SHOWN


def make_content(kind: str, facts: EntryFacts, wire: WireFields) -> EntryContent:
    """Build the content of an entry, for filters and visibility checks, from its kind and its decoded JSON.

    Raises `MalformedEntry` if the JSON lacks a member that this kind needs. An internal kind, such as ``revoke``, has
    content that no filter matches.
    """
    build = _VIEW_BY_KIND.get(kind)
    if build is None:
        return EntryContent(Event(kind, is_sampled=False, is_public=False), frozenset())
    content = build(kind, facts, wire)
    if content is None:
        message = f"a {kind} entry lacks a member that it needs"
        raise MalformedEntry(message)
    return content


def _status_content(kind: str, facts: EntryFacts, wire: WireFields) -> EntryContent | None:
    status = facts.status or wire.status
    if status is None:
        return None
    _check_numeric_id(status.id)
    original = status.original
    repost = original if original is not None and not status.message else None
    event = _status_event(kind, status, repost, facts)
    shown_ids = ShownIds(status.id, None, None if original is None else original.id)
    if kind == "delete" or facts.status is not None:
        shown_ids = NOTHING_SHOWN
    if original is None:
        people = event.user_ids
        return EntryContent(event, people if len(people) == 1 else frozenset((status.uid,)), None, status.id, shown_ids)
    quoted = None if repost is not None else original.uid
    return EntryContent(event, frozenset((status.uid, original.uid)), quoted, status.id, shown_ids)


def _status_event(kind: str, status: StatusFields, repost: StatusFields | None, facts: EntryFacts) -> Event:
    """Build the ``Event`` of a status. A repost gets the original's text and no location; a quote gets both texts.

    ``follow`` finds it by the ids of its author, of the user whom it answers, and of the author whom it reposts. A text
    that begins with @login counts as an answer to that user. Other mentioned users do not count.
    """
    people = {status.uid}
    if status.in_reply_to_uid is not None:
        people.add(status.in_reply_to_uid)
    if repost is not None:
        people.add(repost.uid)
    first = status.entities.mentions[0] if status.entities.mentions else None
    if first is not None and first.id is not None and not status.message[: first.indices[0]].strip():
        people.add(first.id)
    shown = status if repost is None else repost
    point, place = (status.location, status.place) if repost is None else (None, None)
    quoted = status.original if repost is None else None
    is_quote = status.origin is not None and bool(status.message)  # even if the quoted status is hidden or deleted
    author = facts.author
    return Event(
        kind,
        author=status.uid,
        user_ids=frozenset(people),
        status_id=status.id,
        text=shown.message,
        entities=_to_entities(shown.entities),
        lang=shown.lang,
        point=None if point is None else (point.lon, point.lat),
        box=None if place is None else place.box,
        author_login=status.login,
        reply_to=status.in_reply_to_uid,
        reply_to_login=facts.reply_to_login,
        reposted_author=None if repost is None else repost.uid,
        reposted_author_login=None if repost is None else repost.login,
        forms=_FORMS[status.in_reply_to_uid is not None, repost is not None, is_quote],
        media=frozenset([item.type for item in shown.media]) if shown.media else _NO_MEDIA,
        conversation=status.conversation,
        place_name=None if place is None else place.name,
        place_country=None if place is None else place.country,
        followers=None if author is None else author.followers,
        following=None if author is None else author.following,
        posts=None if author is None else author.posts,
        bio="" if author is None else author.bio or "",
        meta=bytes(shown.meta),
        quoted_text="" if quoted is None else quoted.message,
        quoted_entities=NO_ENTITIES if quoted is None else _to_entities(quoted.entities),
    )


def _follow_content(kind: str, _: EntryFacts, wire: WireFields) -> EntryContent | None:
    if wire.source is None or wire.target is None:
        return None
    source, people = wire.source, frozenset((wire.source.id, wire.target.id))
    event = Event(kind, author=source.id, user_ids=people, is_sampled=False, author_login=source.login)
    return EntryContent(event, people)


def _relation_content(kind: str, _: EntryFacts, wire: WireFields) -> EntryContent | None:
    """Build the content of a follow request, block or mute, or of its end.

    Its only actor is the user who did it, `source`.
    """
    if wire.source is None or wire.target is None:
        return None
    source, people = wire.source.id, frozenset((wire.source.id, wire.target.id))
    event = Event(kind, author=source, user_ids=people, is_sampled=False, is_public=False)
    return EntryContent(event, frozenset((source,)))


def _like_content(kind: str, _: EntryFacts, wire: WireFields) -> EntryContent | None:
    if wire.source is None or wire.status is None:
        return None
    status = wire.status
    _check_numeric_id(status.id)
    people = frozenset((wire.source.id, status.uid))
    event = Event(kind, author=wire.source.id, user_ids=people, status_id=status.id, author_login=wire.source.login)
    return EntryContent(event, people, shown_ids=ShownIds(status.id))


def _comment_content(kind: str, facts: EntryFacts, wire: WireFields) -> EntryContent | None:
    """Build the content of a ``comment`` or ``uncomment``. Filters find both by the comment's text."""
    comment, status = facts.comment or wire.comment, wire.status
    if comment is None or status is None:
        return None
    _check_numeric_id(comment.id)
    _check_numeric_id(status.id)
    people, text = frozenset((comment.uid, status.uid)), comment.message
    found = extract_entities(text) if comment.entities is None else _to_entities(comment.entities)
    event = Event(
        kind, author=comment.uid, user_ids=people, status_id=status.id, text=text, entities=found,
        author_login=comment.login,
    )  # fmt: skip
    shown_ids = ShownIds(status.id, comment.id if kind == "comment" else None)
    return EntryContent(event, people, subject_id=comment.id, shown_ids=shown_ids)


def _user_content(kind: str, _: EntryFacts, wire: WireFields) -> EntryContent | None:
    """Build the content of a change of a user's card, or of a group that a user joins or leaves."""
    if wire.user is None:
        return None
    user, is_public = wire.user, kind not in {"group_join", "group_leave"}
    return _content_by_user(kind, user.id, login=user.login if is_public else None, public=is_public)


def _notification_content(kind: str, _: EntryFacts, wire: WireFields) -> EntryContent | None:
    notification = wire.notification
    if notification is None:
        return None
    comment, status = notification.comment, notification.status
    original = None if status is None else status.original
    authored = [item for item in (status, comment, original) if item is not None]
    shown = ShownIds(*(None if item is None else item.id for item in (status, comment, original)))
    actors = frozenset((notification.source.id, *(item.uid for item in authored)))
    return EntryContent(_content_by_user(kind, notification.source.id).event, actors, shown_ids=shown)


def _list_content(kind: str, _: EntryFacts, wire: WireFields) -> EntryContent | None:
    """Build the content of a change to a list. Its only actor is the owner, also if the entry shows a member."""
    if wire.listed is None:
        return None
    owner = wire.listed.uid
    people = frozenset((owner,) if wire.user is None else (owner, wire.user.id))
    event = Event(kind, author=owner, user_ids=people, is_sampled=False, is_public=False)
    return EntryContent(event, frozenset((owner,)))


def _group_content(kind: str, _: EntryFacts, wire: WireFields) -> EntryContent | None:
    """Build the content of a change to a user group. Its ``actors`` are empty, as nobody can block such an entry."""
    return None if wire.group is None else EntryContent(_content_by_user(kind, wire.group.uid).event, frozenset())


def _content_by_user(kind: str, uid: str, *, login: str | None = None, public: bool = False) -> EntryContent:
    """Build the content of an entry with one acting user and no text. The filter ``sample`` never matches it."""
    people = frozenset((uid,))
    event = Event(kind, author=uid, user_ids=people, is_sampled=False, is_public=public, author_login=login)
    return EntryContent(event, people)


def _check_numeric_id(subject: str) -> None:
    if not (subject.isascii() and subject.isdecimal()):
        raise MalformedEntry("the id of a status or comment must be a decimal number")


def _to_entities(found: StatusEntities) -> Entities:
    if not (found.mentions or found.hashtags or found.cashtags or found.urls):
        return NO_ENTITIES
    return Entities(
        mentions=tuple([Mention(m.login, m.indices) for m in found.mentions]),
        hashtags=tuple([Hashtag(t.text, t.indices) for t in found.hashtags]),
        cashtags=tuple([Cashtag(t.text, t.indices) for t in found.cashtags]),
        urls=tuple([Url(u.url, u.display_url, u.expanded_url, u.indices) for u in found.urls]),
    )


_VIEW_BY_KIND: dict[str, Callable[[str, EntryFacts, WireFields], EntryContent | None]] = {
    **dict.fromkeys(("post", "edit", "delete"), _status_content),
    **dict.fromkeys(("follow", "unfollow"), _follow_content),
    **dict.fromkeys(("request", "unrequest", "block", "unblock", "mute", "unmute"), _relation_content),
    **dict.fromkeys(("like", "unlike"), _like_content),
    **dict.fromkeys(("comment", "uncomment"), _comment_content),
    **dict.fromkeys(("user_update", "user_delete", "protect", "unprotect", "group_join", "group_leave"), _user_content),
    "message": lambda kind, _, wire: None if wire.message is None else _content_by_user(kind, wire.message.uid),
    "notification": _notification_content,
    **dict.fromkeys(("list_create", "list_update", "list_delete", "list_add", "list_remove"), _list_content),
    **dict.fromkeys(("group_create", "group_update", "group_delete"), _group_content),
}
"""The function that builds the content of each kind. Other kinds have content that no filter matches."""
