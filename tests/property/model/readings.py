"""All reads of every user, from the store and from the model."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from stream_server.store.pagination import Page, PageRequest
from tests.property.model import shapes
from tests.property.model.access import QUIET, SHOWN
from tests.property.model.moves import TAGS
from tests.property.model.state import Refused
from tests.property.model.walk import UNKNOWN, Walk, outcome
from tests.stream_server.store.scenes import items_of

ALL = PageRequest(count=200)


class Reading(NamedTuple):
    """One read: its name, the question to the store, the compared part of the answer, the model's answer."""

    name: str
    ask: Awaitable[Any]
    shape: Callable[[Any], object]
    model: Callable[[], object]


async def compare(walk: Walk) -> None:
    """Compare all reads of every user who is not suspended."""
    await walk.settle()
    for viewer in walk.people:
        if not walk.world.ground.people[viewer].suspended:
            for reading in _of_viewer(walk, viewer):
                await _same(walk, viewer, reading)


async def _same(walk: Walk, viewer: str, reading: Reading) -> None:
    answer, code = await outcome(reading.ask)
    found = reading.shape(answer) if code is None else f"refused: {code}"
    try:
        expected = reading.model()
    except Refused as refusal:
        expected = f"refused: {refusal.code}"
    assert found == expected, walk.because(f"{reading.name}, read by {viewer}: {found}, not {expected},")


def items(shape: Callable[[bytes], object]) -> Callable[[Page], list[object]]:
    """All items of a page in order. The page must be the last."""

    def of(page: Page) -> list[object]:
        assert page.next is None
        return [shape(one) for one in items_of(page)]

    return of


async def paged(read: Callable[[PageRequest], Awaitable[Page]]) -> Page:
    """All items, read two at a time."""
    page = await read(PageRequest(count=2))
    found = list(items_of(page))
    while page.next is not None:
        page = await read(PageRequest(count=2, before=page.next))
        found += items_of(page)
    return Page(b",".join(found), None, None)


IDS = items(shapes.name)
STATUSES = items(shapes.status)


def _as_set(page: Page) -> set[object]:
    return set(IDS(page))


OWN = {
    "follow_requests.list_received": "relations.received", "follow_requests.list_sent": "relations.sent",
    "blocks.list_blocked": "relations.blocked", "mutes.list_muted": "relations.muted",
    "timelines.read_mentions": "timelines.mentioning", "timelines.read_favorites": "timelines.favorites",
    "talks.list_talks": "talks.of",
}  # fmt: skip
OF_PERSON = {
    "follows.list_following": "relations.followed", "follows.list_followers": "relations.followers",
    "timelines.read_liked": "timelines.liked", "lists.list_owned": "lists.of", "lists.list_containing": "lists.listed",
}  # fmt: skip
OF_STATUS = {
    "likes.list_likers": "marks.likers", "comments.list_comments": "comments.page",
    "timelines.read_reposts": "timelines.reposts", "timelines.read_replies": "timelines.replies",
    "timelines.read_conversation": "timelines.conversation",
}  # fmt: skip
OF_LIST = {"lists.list_members": "lists.members", "timelines.read_list": "timelines.of_list"}
OF_GROUP = {"groups.list_members": "groups.members", "timelines.read_group": "timelines.of_group"}
OF_TALK = {"talks.list_messages": "talks.messages"}
OF_PAIR = {
    "relations.list_common_following": "relations.common_following",
    "relations.list_common_followers": "relations.common_followers",
}
"""The lists that a user reads: of the user's own, and of each thing. Each is a method of the store and of the model."""


class _Reader:
    """The reads of one user."""

    def __init__(self, walk: Walk, viewer: str) -> None:
        self.walk, self.viewer = walk, viewer
        self.store, self.world = walk.store, walk.world

    def lists(self, methods: dict[str, str], *ids: str, shape: Callable[[Any], object] = IDS) -> Iterator[Reading]:
        """The lists of what has these ids."""
        for ask, model in methods.items():
            asked = attrgetter(ask)(self.store)(self.viewer, *ids, ALL)
            answer = attrgetter(model)(self.world)
            yield Reading(f"{ask} {ids}", asked, shape, lambda answer=answer: answer(self.viewer, *ids))  # type: ignore[misc]  # mypy cannot infer a lambda's default

    def one(self, ask: str, shape: Callable[[Any], object], model: Callable[[], object], *ids: str) -> Reading:
        return Reading(f"{ask} {ids}", attrgetter(ask)(self.store)(self.viewer, *ids), shape, model)

    def statuses(self, ask: str, model: Callable[[], list[str]], least: int, *ids: str) -> Reading:
        """A list of whole statuses."""
        shown = attrgetter(ask)(self.store)(self.viewer, *ids, ALL)
        return Reading(f"{ask} {ids}", shown, STATUSES, lambda: [self._status(sid, least) for sid in model()])

    # Objects as the model has them.

    def _user(self, uid: str) -> shapes.Shape:
        one = self.world.ground.people[uid]
        return (uid, one.login, one.name, one.bio, one.protected, *self.world.people.counts(uid))

    def _status(self, sid: str, least: int = QUIET, *, whole: bool = True) -> shapes.Shape:
        ground, posts = self.world.ground, self.world.posts
        one = ground.statuses[sid]
        own = (
            sid, one.uid, ground.people[one.uid].login, one.message, one.in_reply_to, one.in_reply_to_uid,
            one.origin, one.group, one.conversation, *posts.counts(sid), one.mentions,
        )  # fmt: skip
        if one.origin is None or not whole:
            return own
        original = posts.original(self.viewer, one, least)
        return (*own, self._status(original.id, whole=False) if original is not None else None)

    def _comment(self, comment_id: str) -> shapes.Shape:
        one = self.world.comments.get(self.viewer, comment_id)
        return one.id, one.uid, self.world.ground.people[one.uid].login, one.status, one.message

    def _list(self, list_id: str) -> shapes.Shape:
        one = self.world.lists.get(self.viewer, list_id)
        return one.id, one.uid, one.name, one.private, len(one.members)

    def _group(self, gid: str) -> shapes.Shape:
        one = self.world.groups.get(self.viewer, gid)
        return one.id, one.uid, one.name, one.kind, len(one.members)

    def _talk(self, talk_id: str) -> shapes.Shape:
        talks = self.world.talks
        one, said = talks.get(self.viewer, talk_id), talks.messages(self.viewer, talk_id)
        return one.id, one.people, one.name, said[0] if said else None, talks.unread(self.viewer, talk_id)

    # What is read.

    def own(self) -> Iterator[Reading]:
        """Reads that only the user has."""
        store, world, viewer = self.store, self.world, self.viewer
        relations, times = world.relations, world.timelines
        yield from self.lists(OWN)
        yield self.one("users.get_own", shapes.user, lambda: self._user(viewer))
        joined = store.groups.list_joined(viewer, ALL)
        yield Reading("groups", joined, IDS, lambda: world.groups.of(viewer))
        if not world.notices.overflowed(viewer):
            yield Reading(
                "notifications", store.notifications.list_notifications(viewer, ALL), items(shapes.notice),
                lambda: [(*notice, world.notices.read(viewer, notice)) for notice in world.notices.page(viewer)],
            )  # fmt: skip
            unread = store.notifications.list_with_unread_count(viewer, ALL)
            yield Reading("unread", unread, itemgetter(1), lambda: world.notices.unread(viewer))
        yield self.statuses("timelines.read_home", lambda: times.home(viewer), SHOWN)
        by_twos = paged(lambda piece: store.timelines.read_home(viewer, piece))
        yield Reading("home by twos", by_twos, IDS, lambda: times.home(viewer))
        by_twos = paged(lambda piece: store.follows.list_followers(viewer, viewer, piece))
        yield Reading("followers by twos", by_twos, IDS, lambda: relations.followers(viewer, viewer))
        for tag in TAGS:
            found = store.timelines.read_tag(viewer, tag, ALL)
            yield Reading(f"tag {tag}", found, IDS, lambda tag=tag: times.of_tag(viewer, tag.casefold()))  # type: ignore[misc]  # as above

    def person(self, uid: str) -> Iterator[Reading]:
        world, viewer = self.world, self.viewer
        yield self.one("users.get", shapes.user, lambda: self._user(world.people.get(viewer, uid).id), uid)
        yield self.statuses("timelines.read_profile", lambda: world.timelines.profile(viewer, uid), QUIET, uid)
        yield from self.lists(OF_PERSON, uid)

    def status(self, sid: str) -> Iterator[Reading]:
        access, marks, viewer = self.world.access, self.world.marks, self.viewer
        yield self.one("statuses.get", shapes.status, lambda: self._status(access.need(viewer, sid).id), sid)
        yield self.one("likes.has_liked", bool, lambda: marks.has_liked(viewer, sid), sid)
        yield self.one("favorites.is_favorite", bool, lambda: marks.has_kept(viewer, sid), sid)
        yield from self.lists(OF_STATUS, sid)

    def things(self) -> Iterator[Reading]:
        walk = self.walk
        for comment in walk.comments:
            yield self.one("comments.get", shapes.comment, lambda one=comment: self._comment(one), comment)  # type: ignore[misc]  # as above
        rows: Sequence[tuple[str, Sequence[str], Callable[[Any], object], Callable[[str], object], dict[str, str]]] = (
            ("lists.get", walk.lists, shapes.named_list, self._list, OF_LIST),
            ("groups.get", walk.groups, shapes.group, self._group, OF_GROUP),
            ("talks.get", walk.talks, shapes.talk, self._talk, OF_TALK),
        )
        for ask, made, shape, model, methods in rows:
            for one in (*made, UNKNOWN):
                yield self.one(ask, shape, lambda one=one, model=model: model(one), one)  # type: ignore[misc]  # as above
                yield from self.lists(methods, one)

    def pairs(self) -> Iterator[Reading]:
        relations, viewer, people = self.world.relations, self.viewer, self.walk.people
        for uid, other in zip(people, (*people[1:], viewer), strict=True):
            if uid != other:
                yield self.one(
                    "relations.get_relationship", _relationship,
                    lambda uid=uid, other=other: relations.relationship(viewer, uid, other), uid, other,  # type: ignore[misc]  # as above
                )  # fmt: skip
                yield from self.lists(OF_PAIR, uid, other, shape=_as_set)


def _of_viewer(walk: Walk, viewer: str) -> Iterator[Reading]:
    reader = _Reader(walk, viewer)
    yield from reader.own()
    for uid in (*walk.people, UNKNOWN):
        yield from reader.person(uid)
    for sid in (*walk.statuses[-16:], UNKNOWN):
        yield from reader.status(sid)
    yield from reader.pairs()
    yield from reader.things()


def _relationship(found: Any) -> dict[str, bool]:
    return {name: value for name, value in found._asdict().items() if value is not None}
