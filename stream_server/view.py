"""What an entry of the log shows: to the filters as an ``Event``, and of whom, for those who may not see everybody.

One table says what each kind is about: whose deed it is, whom ``follow`` finds it by, whose words ``track`` looks at,
and by which status ``sample`` takes it. What stands in it word by word is :class:`Shown`: that may be gone by the time
of a replay.
"""

from collections.abc import Callable

import msgspec

from filters.entities import NO_ENTITIES, Cashtag, Entities, Hashtag, Mention, Url, extract
from filters.event import Event


class MalformedEntry(ValueError):
    """Bytes on a channel or the log that are no entry of ours: counted and skipped, never fatal."""


class _Mention(msgspec.Struct):
    login: str
    indices: tuple[int, int]
    id: str | None = None


class _Tag(msgspec.Struct):
    text: str
    indices: tuple[int, int]


class _Url(msgspec.Struct):
    url: str
    display_url: str
    expanded_url: str
    indices: tuple[int, int]


class _Entities(msgspec.Struct):
    mentions: list[_Mention] = []
    hashtags: list[_Tag] = []
    cashtags: list[_Tag] = []
    urls: list[_Url] = []


class _Location(msgspec.Struct):
    lon: float
    lat: float


class _Place(msgspec.Struct):
    name: str | None = None
    country: str | None = None
    box: tuple[float, float, float, float] | None = None


class _Media(msgspec.Struct):
    type: str


class Status(msgspec.Struct):
    """As much of a status as the filters look at."""

    id: str
    uid: str
    login: str | None = None
    message: str = ""
    lang: str | None = None
    entities: _Entities = msgspec.field(default_factory=_Entities)
    location: _Location | None = None
    place: _Place | None = None
    media: list[_Media] = []
    conversation: str | None = None
    in_reply_to_uid: str | None = None
    origin: str | None = None
    original: "Status | None" = None


class _User(msgspec.Struct):
    id: str
    login: str | None = None


class _Comment(msgspec.Struct):
    id: str
    uid: str
    login: str | None = None
    message: str = ""
    entities: _Entities | None = None


class _Message(msgspec.Struct):
    uid: str


class _Notification(msgspec.Struct):
    source: _User
    status: Status | None = None
    comment: _Comment | None = None


class _Owned(msgspec.Struct):
    uid: str


class Wire(msgspec.Struct):
    """As much of what clients get as is looked at here."""

    status: Status | None = None
    source: _User | None = None
    target: _User | None = None
    user: _User | None = None
    comment: _Comment | None = None
    message: _Message | None = None
    notification: _Notification | None = None
    group: _Owned | None = None
    listed: _Owned | None = msgspec.field(name="list", default=None)


class Person(msgspec.Struct, frozen=True):
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


class Facts(msgspec.Struct, frozen=True):
    """What is for matching and for other renderings, and in no message of ours.

    ``status`` and ``comment`` are as they were, where what takes them back says the ids only. ``author`` is who wrote
    the status, ``original_author`` who wrote what it repeats or quotes, both as they were when it was posted;
    ``reply_to_login`` is the login of whom it answers.
    """

    status: Status | None = None
    comment: _Comment | None = None
    author: Person | None = None
    original_author: Person | None = None
    reply_to_login: str | None = None


NO_FACTS = Facts()

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


class Shown(msgspec.Struct, frozen=True, gc=False):
    """The ids of those whose words stand in an entry; ``original`` stands inside the status, which can do without it.

    A replay leaves an entry out whose status or comment is gone. Whoever deletes a status takes its comments along, and
    no comment is shown without its status.
    """

    status: str | None = None
    comment: str | None = None
    original: str | None = None


NOTHING = Shown()


class View(msgspec.Struct, frozen=True, gc=False):
    """An entry's ``event``, whose words or deeds it shows, and the author of what it shows beside its own words.

    ``subject`` is the status or the comment that the entry brings or takes back, ``shown`` what can be read in it.
    """

    event: Event
    actors: frozenset[str]
    quoted: str | None = None
    subject: str | None = None
    shown: Shown = NOTHING


def view(kind: str, facts: Facts, wire: Wire) -> View:
    """What an entry shows; ``facts`` are what it was about, where the wire says ids only.

    Raises :class:`MalformedEntry` where what the kind is about is not there.
    """
    look = _LOOKS.get(kind)
    if look is None:
        return View(Event(kind, sampled=False, public=False), frozenset())
    made = look(kind, facts, wire)
    if made is None:
        message = f"a {kind} without what it is about"
        raise MalformedEntry(message)
    return made


def _of_status(kind: str, facts: Facts, wire: Wire) -> View | None:
    """What follow, track and locations look at; a repost is matched by its original's text."""
    status = facts.status or wire.status
    if status is None:
        return None
    _check_id(status.id)
    original = status.original
    repost = original if original is not None and not status.message else None
    people = _people(status, repost)
    event = _event_of_status(kind, status, repost, people, facts)
    told = NOTHING if kind == "delete" else Shown(status.id, None, None if original is None else original.id)
    if original is None:
        return View(event, people if len(people) == 1 else frozenset((status.uid,)), None, status.id, told)
    quoted = None if repost is not None else original.uid
    return View(event, frozenset((status.uid, original.uid)), quoted, status.id, told)


def _event_of_status(
    kind: str, status: Status, repost: Status | None, people: frozenset[str], facts: Facts
) -> Event:
    """A repost says what its original says, and is nowhere; a quote says its own words, beside the original's."""
    shown = status if repost is None else repost
    point, place = (status.location, status.place) if repost is None else (None, None)
    quoted = status.original if repost is None else None
    author = facts.author
    return Event(
        kind,
        author=status.uid,
        people=people,
        status_id=status.id,
        text=shown.message,
        entities=_entities(shown.entities),
        lang=shown.lang,
        point=None if point is None else (point.lon, point.lat),
        box=None if place is None else place.box,
        login=status.login,
        reply_to=status.in_reply_to_uid,
        reply_to_login=facts.reply_to_login,
        reposted=None if repost is None else repost.uid,
        reposted_login=None if repost is None else repost.login,
        forms=_FORMS[status.in_reply_to_uid is not None, repost is not None, _quotes(status)],
        media=frozenset([one.type for one in shown.media]) if shown.media else _NO_MEDIA,
        conversation=status.conversation,
        place_name=None if place is None else place.name,
        place_country=None if place is None else place.country,
        followers=None if author is None else author.followers,
        following=None if author is None else author.following,
        posts=None if author is None else author.posts,
        bio="" if author is None else author.bio or "",
        quoted_text="" if quoted is None else quoted.message,
        quoted_entities=NO_ENTITIES if quoted is None else _entities(quoted.entities),
    )


def _quotes(status: Status) -> bool:
    """Also what is shown without its original, which is hidden or gone, says that there was one."""
    return status.origin is not None and bool(status.message)


def _people(status: Status, repost: Status | None) -> frozenset[str]:
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


def _of_pair(kind: str, _: Facts, wire: Wire) -> View | None:
    """Two people, each of whom is shown: follow, unfollow."""
    if wire.source is None or wire.target is None:
        return None
    people = frozenset((wire.source.id, wire.target.id))
    return View(Event(kind, author=wire.source.id, people=people, sampled=False, login=wire.source.login), people)


def _of_source(kind: str, _: Facts, wire: Wire) -> View | None:
    """The deed of one person towards another: request, block, mute and their ends."""
    if wire.source is None or wire.target is None:
        return None
    source, people = wire.source.id, frozenset((wire.source.id, wire.target.id))
    return View(Event(kind, author=source, people=people, sampled=False, public=False), frozenset((source,)))


def _of_like(kind: str, _: Facts, wire: Wire) -> View | None:
    """What somebody does to a status is sampled as the status is."""
    if wire.source is None or wire.status is None:
        return None
    status = wire.status
    _check_id(status.id)
    people = frozenset((wire.source.id, status.uid))
    event = Event(kind, author=wire.source.id, people=people, status_id=status.id, login=wire.source.login)
    return View(event, people, shown=Shown(status.id))


def _of_comment(kind: str, facts: Facts, wire: Wire) -> View | None:
    """It has no place. What takes a comment back is found by its words too, and shows the comment no more."""
    comment, status = facts.comment or wire.comment, wire.status
    if comment is None or status is None:
        return None
    _check_id(comment.id)
    _check_id(status.id)
    people, text = frozenset((comment.uid, status.uid)), comment.message
    found = extract(text) if comment.entities is None else _entities(comment.entities)
    event = Event(
        kind, author=comment.uid, people=people, status_id=status.id, text=text, entities=found, login=comment.login
    )
    told = Shown(status.id, comment.id if kind == "comment" else None)
    return View(event, people, subject=comment.id, shown=told)


def _of_user(kind: str, _: Facts, wire: Wire) -> View | None:
    return None if wire.user is None else _by(kind, wire.user.id, login=wire.user.login, public=True)


def _of_message(kind: str, _: Facts, wire: Wire) -> View | None:
    return None if wire.message is None else _by(kind, wire.message.uid)


def _of_notification(kind: str, _: Facts, wire: Wire) -> View | None:
    told = wire.notification
    if told is None:
        return None
    comment, status = told.comment, told.status
    original = None if status is None else status.original
    spoken = [one for one in (status, comment, original) if one is not None]
    shown = Shown(*(None if one is None else one.id for one in (status, comment, original)))
    actors = frozenset((told.source.id, *(one.uid for one in spoken)))
    return View(_by(kind, told.source.id).event, actors, shown=shown)


def _of_list(kind: str, _: Facts, wire: Wire) -> View | None:
    return None if wire.listed is None else _by(kind, wire.listed.uid)


def _of_group(kind: str, _: Facts, wire: Wire) -> View | None:
    """A group itself is nobody's words: its members hear of it whatever they think of its owner."""
    if wire.group is None:
        return None
    return View(_by(kind, wire.group.uid).event, frozenset())


def _of_member(kind: str, _: Facts, wire: Wire) -> View | None:
    return None if wire.user is None else _by(kind, wire.user.id)


def _by(kind: str, uid: str, *, login: str | None = None, public: bool = False) -> View:
    people = frozenset((uid,))
    return View(Event(kind, author=uid, people=people, sampled=False, public=public, login=login), people)


def _check_id(subject: str) -> None:
    if not (subject.isascii() and subject.isdecimal()):
        raise MalformedEntry("the id of a status or of a comment is a decimal number")


def _entities(found: _Entities) -> Entities:
    if not (found.mentions or found.hashtags or found.cashtags or found.urls):
        return NO_ENTITIES
    return Entities(
        mentions=tuple(Mention(m.login, m.indices) for m in found.mentions),
        hashtags=tuple(Hashtag(t.text, t.indices) for t in found.hashtags),
        cashtags=tuple(Cashtag(t.text, t.indices) for t in found.cashtags),
        urls=tuple(Url(u.url, u.display_url, u.expanded_url, u.indices) for u in found.urls),
    )


_LOOKS: dict[str, Callable[[str, Facts, Wire], View | None]] = {
    **dict.fromkeys(("post", "delete"), _of_status),
    **dict.fromkeys(("follow", "unfollow"), _of_pair),
    **dict.fromkeys(("request", "unrequest", "block", "unblock", "mute", "unmute"), _of_source),
    **dict.fromkeys(("like", "unlike"), _of_like),
    **dict.fromkeys(("comment", "uncomment"), _of_comment),
    **dict.fromkeys(("user_update", "protect", "unprotect"), _of_user),
    "message": _of_message,
    "notification": _of_notification,
    **dict.fromkeys(("list_create", "list_update", "list_delete", "list_add", "list_remove"), _of_list),
    **dict.fromkeys(("group_create", "group_update", "group_delete"), _of_group),
    **dict.fromkeys(("group_join", "group_leave"), _of_member),
}
