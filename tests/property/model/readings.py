"""All reads of every user, from the store and from the model."""

from collections.abc import Awaitable, Callable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from stream_server.store.pagination import Page, PageRequest
from tests.property.model import shapes
from tests.property.model.access import QUIET, SHOWN
from tests.property.model.moves import TAGS
from tests.property.model.state import Group, NamedList, Refused
from tests.property.model.walk import UNKNOWN, Walk, outcome

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
        return [shape(one) for one in page.items]

    return of


async def paged(read: Callable[[PageRequest], Awaitable[Page]]) -> Page:
    """All items, read two at a time."""
    page = await read(PageRequest(count=2))
    found = list(page.items)
    while page.next is not None:
        page = await read(PageRequest(count=2, before=page.next))
        found += page.items
    return Page(found, None, None)


IDS = items(shapes.name)
STATUSES = items(shapes.status)


def _of_viewer(walk: Walk, viewer: str) -> Iterator[Reading]:
    yield from _own(walk, viewer)
    for uid in (*walk.people, UNKNOWN):
        yield from _person(walk, viewer, uid)
    for sid in (*walk.statuses[-16:], UNKNOWN):
        yield from _status(walk, viewer, sid)
    for comment in walk.comments:
        yield Reading(
            f"comment {comment}", walk.store.comments.get(viewer, comment), shapes.comment,
            lambda comment=comment: comment_of(walk, walk.world.comments.get(viewer, comment).id),  # type: ignore[misc]  # mypy cannot infer a lambda's default
        )  # fmt: skip
    yield from _pairs(walk, viewer)
    for list_id in (*walk.lists, UNKNOWN):
        yield from _list(walk, viewer, list_id)
    for gid in (*walk.groups, UNKNOWN):
        yield from _group(walk, viewer, gid)
    for talk in (*walk.talks, UNKNOWN):
        yield from _talk(walk, viewer, talk)


def _own(walk: Walk, viewer: str) -> Iterator[Reading]:
    """Reads that only the user has."""
    store, world = walk.store, walk.world
    relations = world.relations
    yield Reading("requests", store.follow_requests.list_received(viewer, ALL), IDS, lambda: relations.received(viewer))
    yield Reading("asked", store.follow_requests.list_sent(viewer, ALL), IDS, lambda: relations.sent(viewer))
    yield Reading("blocks", store.blocks.list_blocked(viewer, ALL), IDS, lambda: relations.blocked(viewer))
    yield Reading("mutes", store.mutes.list_muted(viewer, ALL), IDS, lambda: relations.muted(viewer))
    yield Reading("me", store.users.get_own(viewer), shapes.user, lambda: user_of(walk, viewer))
    if not world.notices.overflowed(viewer):
        yield Reading(
            "notifications", store.notifications.list_notifications(viewer, ALL), items(shapes.notice),
            lambda: [(*notice, world.notices.read(viewer, notice)) for notice in world.notices.page(viewer)],
        )  # fmt: skip
        yield Reading(
            "unread", store.notifications.list_with_unread_count(viewer, ALL), itemgetter(1),
            lambda: world.notices.unread(viewer),
        )  # fmt: skip
    timelines, times = store.timelines, world.timelines
    yield Reading(
        "home", timelines.read_home(viewer, ALL), STATUSES, lambda: statuses_of(walk, viewer, times.home(viewer), SHOWN)
    )
    yield Reading(
        "home by twos", paged(lambda piece: timelines.read_home(viewer, piece)), IDS, lambda: times.home(viewer)
    )
    yield Reading(
        "followers by twos", paged(lambda piece: store.follows.list_followers(viewer, viewer, piece)), IDS,
        lambda: relations.followers(viewer, viewer),
    )  # fmt: skip
    yield Reading("mentions", timelines.read_mentions(viewer, ALL), IDS, lambda: times.mentioning(viewer))
    yield Reading("favorites", timelines.read_favorites(viewer, ALL), IDS, lambda: times.favorites(viewer))
    yield Reading("groups", store.groups.list_joined(viewer, viewer, ALL), IDS, lambda: world.groups.of(viewer))
    yield Reading("talks", store.talks.list_talks(viewer, ALL), IDS, lambda: world.talks.of(viewer))
    for tag in TAGS:
        yield Reading(
            f"tag {tag}",
            timelines.read_tag(viewer, tag, ALL),
            IDS,
            lambda tag=tag: times.of_tag(viewer, tag.casefold()),  # type: ignore[misc]  # as below
        )  # fmt: skip


def _person(walk: Walk, viewer: str, uid: str) -> Iterator[Reading]:
    store, relations = walk.store, walk.world.relations
    yield Reading(
        f"user {uid}", store.users.get(viewer, uid), shapes.user,
        lambda: user_of(walk, walk.world.people.get(viewer, uid).id),
    )  # fmt: skip
    yield Reading(
        f"whom {uid} follows",
        store.follows.list_following(viewer, uid, ALL),
        IDS,
        lambda: relations.followed(viewer, uid),
    )
    yield Reading(
        f"who follows {uid}",
        store.follows.list_followers(viewer, uid, ALL),
        IDS,
        lambda: relations.followers(viewer, uid),
    )
    timelines, times = store.timelines, walk.world.timelines
    yield Reading(
        f"profile of {uid}", timelines.read_profile(viewer, uid, ALL), STATUSES,
        lambda: statuses_of(walk, viewer, times.profile(viewer, uid), QUIET),
    )  # fmt: skip
    yield Reading(f"liked by {uid}", timelines.read_liked(viewer, uid, ALL), IDS, lambda: times.liked(viewer, uid))
    yield Reading(
        f"lists of {uid}", store.lists.list_owned(viewer, uid, ALL), IDS, lambda: walk.world.lists.of(viewer, uid)
    )
    yield Reading(
        f"lists with {uid}",
        store.lists.list_containing(viewer, uid, ALL),
        IDS,
        lambda: walk.world.lists.listed(viewer, uid),
    )


def _list(walk: Walk, viewer: str, list_id: str) -> Iterator[Reading]:
    store, lists, times = walk.store, walk.world.lists, walk.world.timelines
    yield Reading(
        f"list {list_id}", store.lists.get(viewer, list_id), shapes.named_list,
        lambda: list_of(lists.get(viewer, list_id)),
    )  # fmt: skip
    yield Reading(
        f"members of {list_id}",
        store.lists.list_members(viewer, list_id, ALL),
        IDS,
        lambda: lists.members(viewer, list_id),
    )
    yield Reading(
        f"timeline of {list_id}", store.timelines.read_list(viewer, list_id, ALL), IDS,
        lambda: times.of_list(viewer, list_id),
    )  # fmt: skip


def _group(walk: Walk, viewer: str, gid: str) -> Iterator[Reading]:
    store, groups, times = walk.store, walk.world.groups, walk.world.timelines
    yield Reading(
        f"group {gid}", store.groups.get(viewer, gid), shapes.group, lambda: group_of(groups.get(viewer, gid))
    )
    yield Reading(
        f"members of {gid}", store.groups.list_members(viewer, gid, ALL), IDS, lambda: groups.members(viewer, gid)
    )
    yield Reading(
        f"statuses in {gid}", store.timelines.read_group(viewer, gid, ALL), IDS, lambda: times.of_group(viewer, gid)
    )


def _talk(walk: Walk, viewer: str, talk: str) -> Iterator[Reading]:
    store, talks = walk.store, walk.world.talks
    yield Reading(f"talk {talk}", store.talks.get(viewer, talk), shapes.talk, lambda: talk_of(walk, viewer, talk))
    yield Reading(
        f"said in {talk}", store.talks.list_messages(viewer, talk, ALL), IDS, lambda: talks.messages(viewer, talk)
    )


def _status(walk: Walk, viewer: str, sid: str) -> Iterator[Reading]:
    store, world = walk.store, walk.world
    yield Reading(
        f"status {sid}", store.statuses.get(viewer, sid), shapes.status,
        lambda: status_of(walk, viewer, world.access.need(viewer, sid).id),
    )  # fmt: skip
    yield Reading(
        f"likers of {sid}", store.likes.list_likers(viewer, sid, ALL), IDS, lambda: world.marks.likers(viewer, sid)
    )
    yield Reading(
        f"likes {sid}",
        store.likes.has_liked(viewer, sid, viewer),
        bool,
        lambda: world.marks.has_liked(viewer, sid, viewer),
    )
    yield Reading(
        f"keeps {sid}", store.favorites.is_favorite(viewer, sid), bool, lambda: world.marks.has_kept(viewer, sid)
    )
    yield Reading(
        f"comments of {sid}",
        store.comments.list_comments(viewer, sid, ALL),
        IDS,
        lambda: world.comments.page(viewer, sid),
    )
    timelines, times = store.timelines, world.timelines
    yield Reading(
        f"reposts of {sid}", timelines.read_reposts(viewer, sid, ALL), IDS, lambda: times.reposts(viewer, sid)
    )
    yield Reading(
        f"replies to {sid}", timelines.read_replies(viewer, sid, ALL), IDS, lambda: times.replies(viewer, sid)
    )
    yield Reading(
        f"thread of {sid}", timelines.read_conversation(viewer, sid, ALL), IDS, lambda: times.conversation(viewer, sid)
    )


def _pairs(walk: Walk, viewer: str) -> Iterator[Reading]:
    store, relations = walk.store, walk.world.relations
    for uid, other in zip(walk.people, (*walk.people[1:], viewer), strict=True):
        if uid == other:
            continue
        yield Reading(
            f"relationship {uid} {other}", store.relations.get_relationship(viewer, uid, other), _relationship,
            lambda uid=uid, other=other: relations.relationship(viewer, uid, other),  # type: ignore[misc]  # as above
        )  # fmt: skip
        yield Reading(
            f"both {uid} and {other} follow", store.relations.list_common_following(viewer, uid, other, ALL),
            lambda page: set(IDS(page)),
            lambda uid=uid, other=other: relations.common_following(viewer, uid, other),  # type: ignore[misc]  # as above
        )  # fmt: skip
        yield Reading(
            f"who follows both {uid} and {other}", store.relations.list_common_followers(viewer, uid, other, ALL),
            lambda page: set(IDS(page)),
            lambda uid=uid, other=other: relations.common_followers(viewer, uid, other),  # type: ignore[misc]  # as above
        )  # fmt: skip


def _relationship(found: Any) -> dict[str, bool]:
    return {name: value for name, value in found._asdict().items() if value is not None}


def user_of(walk: Walk, uid: str) -> shapes.Shape:
    person = walk.world.ground.people[uid]
    return (uid, person.login, person.name, person.bio, person.protected, *walk.world.people.counts(uid))


def status_of(walk: Walk, viewer: str, sid: str, least: int = QUIET, *, whole: bool = True) -> shapes.Shape:
    ground, posts = walk.world.ground, walk.world.posts
    one = ground.statuses[sid]
    own = (
        sid, one.uid, ground.people[one.uid].login, one.message, one.in_reply_to, one.in_reply_to_uid,
        one.origin, one.group, one.conversation, *posts.counts(sid), one.mentions,
    )  # fmt: skip
    if one.origin is None or not whole:
        return own
    original = posts.original(viewer, one, least)
    return (*own, status_of(walk, viewer, original.id, whole=False) if original is not None else None)


def comment_of(walk: Walk, comment_id: str) -> shapes.Shape:
    one = walk.world.ground.comments[comment_id]
    return one.id, one.uid, walk.world.ground.people[one.uid].login, one.status, one.message


def statuses_of(walk: Walk, viewer: str, ids: list[str], least: int) -> list[shapes.Shape]:
    return [status_of(walk, viewer, sid, least) for sid in ids]


def list_of(one: NamedList) -> shapes.Shape:
    return one.id, one.uid, one.name, one.private, len(one.members)


def group_of(one: Group) -> shapes.Shape:
    return one.id, one.uid, one.name, one.kind, len(one.members)


def talk_of(walk: Walk, viewer: str, talk_id: str) -> shapes.Shape:
    one = walk.world.talks.get(viewer, talk_id)
    said = walk.world.talks.messages(viewer, talk_id)
    return one.id, one.people, one.name, said[0] if said else None, walk.world.talks.unread(viewer, talk_id)
