"""What an entry of the log shows: to the filters as an ``Event``, and of whom, for those who may not see everybody.

One table says what each kind is about: whose deed it is, whom ``follow`` finds it by, whose words ``track`` looks at,
and by which status ``sample`` takes it. What stands in it word by word is :class:`ShownIds`: that may be gone by the time
of a replay.
"""

from collections.abc import Callable

import msgspec

from filters.entities import NO_ENTITIES, Cashtag, Entities, Hashtag, Mention, Url, extract_entities
from filters.event import Event
from stream_server.events.entry_fields import EntitiesFields, EntryFacts, MalformedEntry, StatusFields, WireFields

_NO_MEDIA: frozenset[str] = frozenset()

_FORMS = {
    (reply, repost, quote): frozenset(
        name for name, so in (("reply", reply), ("repost", repost), ("quote", quote)) if so
    )
    for reply in (False, True)
    for repost in (False, True)
    for quote in (False, True)
}
"""By whether a status is each of them; made once, since there are only eight."""


class ShownIds(msgspec.Struct, frozen=True, gc=False):
    """The ids of those whose words stand in an entry; ``original`` stands inside the status, which can do without it.

    A replay leaves an entry out whose status or comment is gone. Whoever deletes a status takes its comments along, and
    no comment is shown without its status.
    """

    status: str | None = None
    comment: str | None = None
    original: str | None = None


NOTHING_SHOWN = ShownIds()


class EntryView(msgspec.Struct, frozen=True, gc=False):
    """An entry's ``event``, whose words or deeds it shows, and the author of what it shows beside its own words.

    ``subject_id`` is the status or the comment that the entry brings or takes back, ``shown_ids`` what can be read in it.
    """

    event: Event
    actors: frozenset[str]
    quoted_author: str | None = None
    subject_id: str | None = None
    shown_ids: ShownIds = NOTHING_SHOWN


def make_view(kind: str, facts: EntryFacts, wire: WireFields) -> EntryView:
    """What an entry shows; ``facts`` are what it was about, where the wire says ids only.

    Raises :class:`MalformedEntry` where what the kind is about is not there.
    """
    look = _VIEW_BY_KIND.get(kind)
    if look is None:
        return EntryView(Event(kind, is_sampled=False, is_public=False), frozenset())
    made = look(kind, facts, wire)
    if made is None:
        message = f"a {kind} without what it is about"
        raise MalformedEntry(message)
    return made


def _view_status(kind: str, facts: EntryFacts, wire: WireFields) -> EntryView | None:
    """What follow, track and locations look at; a repost is matched by its original's text."""
    status = facts.status or wire.status
    if status is None:
        return None
    _check_numeric_id(status.id)
    original = status.original
    repost = original if original is not None and not status.message else None
    people = _users_of_status(status, repost)
    event = _status_event(kind, status, repost, people, facts)
    told = NOTHING_SHOWN if kind == "delete" else ShownIds(status.id, None, None if original is None else original.id)
    if original is None:
        return EntryView(event, people if len(people) == 1 else frozenset((status.uid,)), None, status.id, told)
    quoted = None if repost is not None else original.uid
    return EntryView(event, frozenset((status.uid, original.uid)), quoted, status.id, told)


def _status_event(
    kind: str, status: StatusFields, repost: StatusFields | None, people: frozenset[str], facts: EntryFacts
) -> Event:
    """A repost says what its original says, and is nowhere; a quote says its own words, beside the original's."""
    shown = status if repost is None else repost
    point, place = (status.location, status.place) if repost is None else (None, None)
    quoted = status.original if repost is None else None
    author = facts.author
    return Event(
        kind,
        author=status.uid,
        user_ids=people,
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
        forms=_FORMS[status.in_reply_to_uid is not None, repost is not None, _is_quote(status)],
        media=frozenset([one.type for one in shown.media]) if shown.media else _NO_MEDIA,
        conversation=status.conversation,
        place_name=None if place is None else place.name,
        place_country=None if place is None else place.country,
        followers=None if author is None else author.followers,
        following=None if author is None else author.following,
        posts=None if author is None else author.posts,
        bio="" if author is None else author.bio or "",
        quoted_text="" if quoted is None else quoted.message,
        quoted_entities=NO_ENTITIES if quoted is None else _to_entities(quoted.entities),
    )


def _is_quote(status: StatusFields) -> bool:
    """Also what is shown without its original, which is hidden or gone, says that there was one."""
    return status.origin is not None and bool(status.message)


def _users_of_status(status: StatusFields, repost: StatusFields | None) -> frozenset[str]:
    """By, reply to (also by hand: the text begins with @login), repost by or of; not who is merely mentioned."""
    people = {status.uid}
    if status.in_reply_to_uid is not None:
        people.add(status.in_reply_to_uid)
    if repost is not None:
        people.add(repost.uid)
    first = status.entities.mentions[0] if status.entities.mentions else None
    if first is not None and first.id is not None and not status.message[: first.indices[0]].strip():
        people.add(first.id)
    return frozenset(people)


def _view_follow(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    """Two people, each of whom is shown: follow, unfollow."""
    if wire.source is None or wire.target is None:
        return None
    people = frozenset((wire.source.id, wire.target.id))
    return EntryView(
        Event(kind, author=wire.source.id, user_ids=people, is_sampled=False, author_login=wire.source.login), people
    )


def _view_relation(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    """The deed of one person towards another: request, block, mute and their ends."""
    if wire.source is None or wire.target is None:
        return None
    source, people = wire.source.id, frozenset((wire.source.id, wire.target.id))
    return EntryView(
        Event(kind, author=source, user_ids=people, is_sampled=False, is_public=False), frozenset((source,))
    )


def _view_like(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    """What somebody does to a status is sampled as the status is."""
    if wire.source is None or wire.status is None:
        return None
    status = wire.status
    _check_numeric_id(status.id)
    people = frozenset((wire.source.id, status.uid))
    event = Event(kind, author=wire.source.id, user_ids=people, status_id=status.id, author_login=wire.source.login)
    return EntryView(event, people, shown_ids=ShownIds(status.id))


def _view_comment(kind: str, facts: EntryFacts, wire: WireFields) -> EntryView | None:
    """It has no place. What takes a comment back is found by its words too, and shows the comment no more."""
    comment, status = facts.comment or wire.comment, wire.status
    if comment is None or status is None:
        return None
    _check_numeric_id(comment.id)
    _check_numeric_id(status.id)
    people, text = frozenset((comment.uid, status.uid)), comment.message
    found = extract_entities(text) if comment.entities is None else _to_entities(comment.entities)
    event = Event(
        kind,
        author=comment.uid,
        user_ids=people,
        status_id=status.id,
        text=text,
        entities=found,
        author_login=comment.login,
    )
    told = ShownIds(status.id, comment.id if kind == "comment" else None)
    return EntryView(event, people, subject_id=comment.id, shown_ids=told)


def _view_user(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    return None if wire.user is None else _view_by_user(kind, wire.user.id, login=wire.user.login, public=True)


def _view_message(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    return None if wire.message is None else _view_by_user(kind, wire.message.uid)


def _view_notification(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    told = wire.notification
    if told is None:
        return None
    comment, status = told.comment, told.status
    original = None if status is None else status.original
    spoken = [one for one in (status, comment, original) if one is not None]
    shown = ShownIds(*(None if one is None else one.id for one in (status, comment, original)))
    actors = frozenset((told.source.id, *(one.uid for one in spoken)))
    return EntryView(_view_by_user(kind, told.source.id).event, actors, shown_ids=shown)


def _view_list(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    return None if wire.listed is None else _view_by_user(kind, wire.listed.uid)


def _view_group(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    """A group itself is nobody's words: its members hear of it whatever they think of its owner."""
    if wire.group is None:
        return None
    return EntryView(_view_by_user(kind, wire.group.uid).event, frozenset())


def _view_group_member(kind: str, _: EntryFacts, wire: WireFields) -> EntryView | None:
    return None if wire.user is None else _view_by_user(kind, wire.user.id)


def _view_by_user(kind: str, uid: str, *, login: str | None = None, public: bool = False) -> EntryView:
    people = frozenset((uid,))
    return EntryView(
        Event(kind, author=uid, user_ids=people, is_sampled=False, is_public=public, author_login=login), people
    )


def _check_numeric_id(subject: str) -> None:
    if not (subject.isascii() and subject.isdecimal()):
        raise MalformedEntry("the id of a status or of a comment is a decimal number")


def _to_entities(found: EntitiesFields) -> Entities:
    if not (found.mentions or found.hashtags or found.cashtags or found.urls):
        return NO_ENTITIES
    return Entities(
        mentions=tuple(Mention(m.login, m.indices) for m in found.mentions),
        hashtags=tuple(Hashtag(t.text, t.indices) for t in found.hashtags),
        cashtags=tuple(Cashtag(t.text, t.indices) for t in found.cashtags),
        urls=tuple(Url(u.url, u.display_url, u.expanded_url, u.indices) for u in found.urls),
    )


_VIEW_BY_KIND: dict[str, Callable[[str, EntryFacts, WireFields], EntryView | None]] = {
    **dict.fromkeys(("post", "delete"), _view_status),
    **dict.fromkeys(("follow", "unfollow"), _view_follow),
    **dict.fromkeys(("request", "unrequest", "block", "unblock", "mute", "unmute"), _view_relation),
    **dict.fromkeys(("like", "unlike"), _view_like),
    **dict.fromkeys(("comment", "uncomment"), _view_comment),
    **dict.fromkeys(("user_update", "protect", "unprotect"), _view_user),
    "message": _view_message,
    "notification": _view_notification,
    **dict.fromkeys(("list_create", "list_update", "list_delete", "list_add", "list_remove"), _view_list),
    **dict.fromkeys(("group_create", "group_update", "group_delete"), _view_group),
    **dict.fromkeys(("group_join", "group_leave"), _view_group_member),
}
