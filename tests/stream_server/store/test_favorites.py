"""Favorites: kept for oneself, told to nobody, shown as long as they may be seen."""

import pytest
import redis

from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import befriend, hide, ids, protect, soon_unseen, whole


async def test_keeping_tells_nobody(store: Store, people: People, raw: "redis.Redis") -> None:
    """No entry, no counter, no notification: only the one set, and dropping empties it."""
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    before = whole(raw)
    await store.favorites.add(bob, status, IdempotencyKey.generate())
    assert await store.favorites.is_favorite(bob, status)
    assert not await store.favorites.is_favorite(ann, status)
    assert whole(raw).keys() - before.keys() == {keys.key_for("favorites", bob).encode()}
    assert {name: value for name, value in whole(raw).items() if name in before} == before
    await store.favorites.remove(bob, status, IdempotencyKey.generate())
    assert not await store.favorites.is_favorite(bob, status)
    assert whole(raw) == before


async def test_twice_is_once(store: Store, people: People, raw: "redis.Redis") -> None:
    """It keeps the time of the first keeping; dropping what is not kept is nothing."""
    ann = await people.user("Ann")
    status = (await people.status(ann))["id"]
    await store.favorites.remove(ann, status, IdempotencyKey.generate())
    await store.favorites.add(ann, status, IdempotencyKey.generate())
    raw.zadd(keys.key_for("favorites", ann), {status: 5})
    before = whole(raw)
    await store.favorites.add(ann, status, IdempotencyKey.generate())
    assert whole(raw) == before


async def test_what_is_not_seen_cannot_be_kept(store: Store, people: People, raw: "redis.Redis") -> None:
    """Unknown, deleted, blocked, protected, suspended, in a private group: the same 404."""
    unseen = await soon_unseen(people)
    bob = unseen.users[1]
    await hide(store, unseen)
    before = whole(raw)
    for status in unseen.statuses:
        for refused in (
            store.favorites.add(bob, status, IdempotencyKey.generate()),
            store.favorites.remove(bob, status, IdempotencyKey.generate()),
            store.favorites.is_favorite(bob, status),
        ):
            with pytest.raises(NotFound):
                await refused
    assert whole(raw) == before


async def test_what_may_no_longer_be_seen_is_not_shown(store: Store, people: People) -> None:
    """It comes back when it may be seen again, and can be dropped meanwhile; muted ones stay, one has kept them."""
    ann, bob, eve, viewer = await people.users(4)
    kept = [(await people.status(author))["id"] for author in (ann, bob, eve)]
    for status in kept:
        await store.favorites.add(viewer, status, IdempotencyKey.generate())

    async def shown() -> set[str]:
        return set(ids(await store.timelines.read_favorites(viewer, PageRequest())))

    assert await shown() == set(kept)
    await store.mutes.mute(viewer, eve, IdempotencyKey.generate())
    await store.blocks.block(ann, viewer, IdempotencyKey.generate())
    await protect(store, bob)
    assert await shown() == {kept[2]}
    with pytest.raises(NotFound):
        await store.favorites.is_favorite(viewer, kept[0])
    await befriend(store, viewer, bob)
    assert await shown() == {kept[1], kept[2]}
    await store.favorites.remove(viewer, kept[0], IdempotencyKey.generate())
    await store.blocks.unblock(ann, viewer, IdempotencyKey.generate())
    assert await shown() == {kept[1], kept[2]}
    await store.statuses.delete(bob, kept[1], IdempotencyKey.generate())
    assert await shown() == {kept[2]}
    await store.favorites.remove(viewer, kept[1], IdempotencyKey.generate())
    with pytest.raises(NotFound):
        await store.favorites.remove(viewer, kept[1], IdempotencyKey.generate())
