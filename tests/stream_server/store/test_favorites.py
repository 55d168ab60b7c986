"""Favorites: kept for oneself, told to nobody, shown as long as they may be seen."""

import pytest
import redis

from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.page import Piece
from stream_server.store.request import Request
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import befriend, hide, ids, protect, soon_unseen, whole


async def test_keeping_tells_nobody(store: Store, people: People, raw: "redis.Redis") -> None:
    """No entry, no counter, no notification: only the one set, and dropping empties it."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    before = whole(raw)
    await store.favorites.keep(bob, status, Request.fresh())
    assert await store.favorites.has(bob, status)
    assert not await store.favorites.has(ann, status)
    assert whole(raw).keys() - before.keys() == {keys.named("favorites", bob).encode()}
    assert {name: value for name, value in whole(raw).items() if name in before} == before
    await store.favorites.drop(bob, status, Request.fresh())
    assert not await store.favorites.has(bob, status)
    assert whole(raw) == before


async def test_twice_is_once(store: Store, people: People, raw: "redis.Redis") -> None:
    """It keeps the time of the first keeping; dropping what is not kept is nothing."""
    ann = await people.user("Ann")
    status = (await people.status(ann))["id"]
    await store.favorites.drop(ann, status, Request.fresh())
    await store.favorites.keep(ann, status, Request.fresh())
    raw.zadd(keys.named("favorites", ann), {status: 5})
    before = whole(raw)
    await store.favorites.keep(ann, status, Request.fresh())
    assert whole(raw) == before


async def test_what_is_not_seen_cannot_be_kept(store: Store, people: People, raw: "redis.Redis") -> None:
    """Unknown, deleted, blocked, protected, suspended, in a private group: the same 404."""
    unseen = await soon_unseen(people)
    bob = unseen.users[1]
    await hide(store, unseen)
    before = whole(raw)
    for status in unseen.statuses:
        for refused in (
            store.favorites.keep(bob, status, Request.fresh()),
            store.favorites.drop(bob, status, Request.fresh()),
            store.favorites.has(bob, status),
        ):
            with pytest.raises(NotFound):
                await refused
    assert whole(raw) == before


async def test_what_may_no_longer_be_seen_is_not_shown(store: Store, people: People) -> None:
    """It comes back when it may be seen again, and can be dropped meanwhile; muted ones stay, one has kept them."""
    ann, bob, eve, viewer = await people.users(4)
    kept = [(await people.status(author))["id"] for author in (ann, bob, eve)]
    for status in kept:
        await store.favorites.keep(viewer, status, Request.fresh())

    async def shown() -> set[str]:
        return set(ids(await store.timelines.favorites(viewer, Piece())))

    assert await shown() == set(kept)
    await store.mutes.mute(viewer, eve, Request.fresh())
    await store.blocks.block(ann, viewer, Request.fresh())
    await protect(store, bob)
    assert await shown() == {kept[2]}
    with pytest.raises(NotFound):
        await store.favorites.has(viewer, kept[0])
    await befriend(store, viewer, bob)
    assert await shown() == {kept[1], kept[2]}
    await store.favorites.drop(viewer, kept[0], Request.fresh())
    await store.blocks.unblock(ann, viewer, Request.fresh())
    assert await shown() == {kept[1], kept[2]}
    await store.statuses.delete(bob, kept[1], Request.fresh())
    assert await shown() == {kept[2]}
    await store.favorites.drop(viewer, kept[1], Request.fresh())
    with pytest.raises(NotFound):
        await store.favorites.drop(viewer, kept[1], Request.fresh())
