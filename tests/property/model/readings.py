"""Everything that can be read, by everybody, from the store and from the model."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from stream_server.store.page import Page, Piece
from tests.property.model import shapes
from tests.property.model.ground import Refused
from tests.property.model.moves import TAGS
from tests.property.model.walk import UNKNOWN, Walk, outcome

ALL = Piece(count=200)


class Reading(NamedTuple):
    """One thing to read: its name, what asks the store, what of the answer is compared, what asks the model."""

    name: str
    ask: Awaitable[Any]
    shape: Callable[[Any], object]
    model: Callable[[], object]


async def compare(walk: Walk) -> None:
    """Read all with everybody's eyes; those who are suspended are turned away before they come here."""
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
    """All items of a page in order; a page that was asked to hold all has no next."""

    def of(page: Page) -> list[object]:
        assert page.next is None
        return [shape(one) for one in page.items]

    return of


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


def _own(walk: Walk, viewer: str) -> Iterator[Reading]:
    """What only oneself reads."""
    store, world = walk.store, walk.world
    relations = world.relations
    yield Reading("requests", store.follow_requests.received(viewer, ALL), IDS, lambda: relations.received(viewer))
    yield Reading("asked", store.follow_requests.sent(viewer, ALL), IDS, lambda: relations.sent(viewer))
    yield Reading("blocks", store.blocks.page(viewer, ALL), IDS, lambda: relations.blocked(viewer))
    yield Reading("mutes", store.mutes.page(viewer, ALL), IDS, lambda: relations.muted(viewer))
    yield Reading("me", store.users.me(viewer), shapes.user, lambda: user_of(walk, viewer))
    yield Reading(
        "notifications", store.notifications.page(viewer, ALL), items(shapes.notice),
        lambda: [(*notice, False) for notice in world.notices.page(viewer)],
    )  # fmt: skip


def _person(walk: Walk, viewer: str, uid: str) -> Iterator[Reading]:
    """What there is of somebody."""
    store, relations = walk.store, walk.world.relations
    yield Reading(
        f"user {uid}", store.users.get(viewer, uid), shapes.user,
        lambda: user_of(walk, walk.world.people.get(viewer, uid).id),
    )  # fmt: skip
    yield Reading(
        f"whom {uid} follows", store.follows.followed(viewer, uid, ALL), IDS, lambda: relations.followed(viewer, uid)
    )
    yield Reading(
        f"who follows {uid}", store.follows.followers(viewer, uid, ALL), IDS, lambda: relations.followers(viewer, uid)
    )


def _status(walk: Walk, viewer: str, sid: str) -> Iterator[Reading]:
    """What there is of a status."""
    store, world = walk.store, walk.world
    yield Reading(
        f"status {sid}", store.statuses.get(viewer, sid), shapes.status,
        lambda: status_of(walk, viewer, world.eyes.need(viewer, sid).id),
    )  # fmt: skip
    yield Reading(f"likers of {sid}", store.likes.page(viewer, sid, ALL), IDS, lambda: world.marks.likers(viewer, sid))
    yield Reading(
        f"likes {sid}", store.likes.has(viewer, sid, viewer), bool, lambda: world.marks.has_liked(viewer, sid, viewer)
    )
    yield Reading(f"keeps {sid}", store.favorites.has(viewer, sid), bool, lambda: world.marks.has_kept(viewer, sid))
    yield Reading(
        f"comments of {sid}", store.comments.page(viewer, sid, ALL), IDS, lambda: world.comments.page(viewer, sid)
    )


def _pairs(walk: Walk, viewer: str) -> Iterator[Reading]:
    """How two stand, one of them often the viewer."""
    store, relations = walk.store, walk.world.relations
    for uid, other in zip(walk.people, (*walk.people[1:], viewer), strict=True):
        if uid == other:
            continue
        yield Reading(
            f"relationship {uid} {other}", store.relations.relationship(viewer, uid, other), _relationship,
            lambda uid=uid, other=other: relations.relationship(viewer, uid, other),  # type: ignore[misc]  # as above
        )  # fmt: skip
        yield Reading(
            f"both {uid} and {other} follow", store.relations.common_following(viewer, uid, other, ALL),
            lambda page: set(IDS(page)),
            lambda uid=uid, other=other: relations.common_following(viewer, uid, other),  # type: ignore[misc]  # as above
        )  # fmt: skip
        yield Reading(
            f"who follows both {uid} and {other}", store.relations.common_followers(viewer, uid, other, ALL),
            lambda page: set(IDS(page)),
            lambda uid=uid, other=other: relations.common_followers(viewer, uid, other),  # type: ignore[misc]  # as above
        )  # fmt: skip


def _relationship(found: Any) -> dict[str, bool]:
    return {name: value for name, value in found._asdict().items() if value is not None}


def user_of(walk: Walk, uid: str) -> shapes.Shape:
    """A user as the model would show it."""
    person = walk.world.ground.people[uid]
    return (uid, person.login, person.name, person.bio, person.protected, *walk.world.people.counts(uid))


def status_of(walk: Walk, viewer: str, sid: str, *, whole: bool = True) -> shapes.Shape:
    """A status as the model would show it."""
    ground, posts = walk.world.ground, walk.world.posts
    one = ground.statuses[sid]
    own = (
        sid, one.uid, ground.people[one.uid].login, one.message, one.in_reply_to, one.in_reply_to_uid,
        one.origin, one.group, one.conversation, *posts.counts(sid), one.mentions,
    )  # fmt: skip
    if one.origin is None or not whole:
        return own
    original = posts.original(viewer, one)
    return (*own, status_of(walk, viewer, original.id, whole=False) if original is not None else None)


def comment_of(walk: Walk, comment_id: str) -> shapes.Shape:
    """A comment as the model would show it."""
    one = walk.world.ground.comments[comment_id]
    return one.id, one.uid, walk.world.ground.people[one.uid].login, one.status, one.message


TAGGED = TAGS
