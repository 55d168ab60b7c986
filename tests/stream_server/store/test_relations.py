"""How two users stand to each other, and whom they have in common."""

import json
import random
from typing import Any

import pytest
import redis

from stream_server.errors import BadRequest, InvalidCursor, NotFound
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.social.relations import Relationship
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import ids, protect, whole

COMMON = ["list_common_following", "list_common_followers"]


async def test_who_follows_whom(store: Store, people: People) -> None:
    """One, the other, both or none, from each side; a third person sees the same of the follows."""
    ann, bob, carl = await people.users(3)
    seen = []
    for source, target in (("", ""), (ann, bob), (bob, ann)):
        if source:
            await store.follows.follow(source, target, IdempotencyKey.generate())
        forth, back = [await store.relations.get_relationship(carl, one, two) for one, two in ((ann, bob), (bob, ann))]
        assert (forth.following, forth.followed_by) == (back.followed_by, back.following)
        seen.append((forth.following, forth.followed_by, forth.is_mutual, back.is_mutual))
    assert seen == [(False, False, False, False), (True, False, False, False), (True, True, True, True)]


async def test_what_only_the_two_are_told(store: Store, people: People) -> None:
    """Requests are for the two; blocks and mutes are what the asker does, never what is done to the asker."""
    ann, bob, carl = await people.users(3)
    await protect(store, bob)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.mutes.mute(bob, ann, IdempotencyKey.generate())
    relationship = store.relations.get_relationship
    assert await relationship(ann, ann, bob) == Relationship(False, False, True, False, False, False)
    assert await relationship(ann, bob, ann) == Relationship(False, False, False, True, False, False)
    assert await relationship(bob, bob, ann) == Relationship(False, False, False, True, False, True)
    assert await relationship(bob, ann, bob) == Relationship(False, False, True, False, False, True)
    assert await relationship(carl, ann, bob) == Relationship(False, False, None, None, None, None)
    await store.blocks.block(bob, ann, IdempotencyKey.generate())
    assert await relationship(bob, ann, bob) == Relationship(False, False, False, False, True, True)


async def test_who_is_not_there_has_no_relations(store: Store, people: People, raw: "redis.Redis") -> None:
    """The unknown, the suspended and whoever blocks the asker are named as missing; nobody relates to oneself."""
    ann, bob, carl, dora = await people.users(4)
    await store.blocks.block(carl, ann, IdempotencyKey.generate())
    await store.suspensions.suspend(bob, dora, IdempotencyKey.generate())
    reads: list[Any] = [store.relations.get_relationship]
    reads += [lambda *who, read=read: getattr(store.relations, read)(*who, PageRequest()) for read in COMMON]
    for read in reads:
        for missing in (carl, dora, "1"):
            for pair, param in (((missing, bob), "id"), ((bob, missing), "other")):
                with pytest.raises(NotFound) as refusal:
                    await read(ann, *pair)
                assert refusal.value.param == param
        with pytest.raises(BadRequest) as oneself:
            await read(ann, bob, bob)
        assert oneself.value.param == "other"


async def test_whom_both_follow_and_who_follows_both(store: Store, people: People) -> None:
    """By when the first one began, newest first, with since; the suspended and who blocks the asker are left out."""
    ann, bob, carl, *others = await people.users(9)
    for other in others:
        for uid in (ann, bob):
            await store.follows.follow(uid, other, IdempotencyKey.generate())
            await store.follows.follow(other, uid, IdempotencyKey.generate())
    await store.follows.follow(ann, carl, IdempotencyKey.generate())
    await store.follows.follow(carl, bob, IdempotencyKey.generate())
    await store.blocks.block(others[1], carl, IdempotencyKey.generate())
    await store.suspensions.suspend(ann, others[2], IdempotencyKey.generate())
    expected = [others[i] for i in (5, 4, 3, 0)]
    for read, list_of in ((store.relations.list_common_following, store.follows.list_following),
                          (store.relations.list_common_followers, store.follows.list_followers)):  # fmt: skip
        page = await read(carl, ann, bob, PageRequest())
        assert ids(page) == expected
        since = {
            json.loads(item)["id"]: json.loads(item)["since"] for item in (await list_of(ann, ann, PageRequest())).items
        }
        assert [json.loads(item)["since"] for item in page.items] == [since[uid] for uid in expected]
        assert ids(await read(others[0], ann, bob, PageRequest())) == [others[i] for i in (5, 4, 3, 1, 0)]
    alone = await people.user("alone")
    assert await store.relations.list_common_following(carl, carl, alone, PageRequest()) == ([], None, None)


@pytest.mark.parametrize("sizes", [(40, 40), (5000, 40), (40, 5000), (9000, 9000)], ids=str)
@pytest.mark.parametrize("read", COMMON)
async def test_pages_are_exact_whatever_the_sizes(
    store: Store, people: People, raw: "redis.Redis", read: str, sizes: tuple[int, int]
) -> None:
    """All in common, once, in order, both ways, many of one millisecond; however few they are among however many."""
    source = random.Random(repr((read, sizes)))
    ann, bob, anns, bobs, *others = await people.users(24)
    expected: list[tuple[int, str]] = []
    for uid, size, lone in ((ann, sizes[0], anns), (bob, sizes[1], bobs)):
        key = f"{{core}}:{read.removeprefix('list_common_')}:{uid}"
        strangers = {f"{uid}{i:05}": 1_795_000_000_000 + source.randrange(size // 4) for i in range(size)}
        common = {other: 1_795_000_000_000 + source.randrange(size // 4) for other in others}
        raw.zadd(key, strangers | common | {lone: 1_795_000_000_000})
        expected = expected or sorted(((score, other) for other, score in common.items()), reverse=True)
    asked = getattr(store.relations, read)
    pages: list[Page] = [await asked(ann, ann, bob, PageRequest(7))]
    while pages[-1].next is not None:
        pages.append(await asked(ann, ann, bob, PageRequest(7, before=pages[-1].next)))
    assert [uid for page in pages for uid in ids(page)] == [uid for _, uid in expected]
    assert [len(page.items) for page in pages] == [7, 7, 6]
    back = await asked(ann, ann, bob, PageRequest(200, after=pages[-1].prev))
    assert ids(back) == [uid for _, uid in expected[:14]]
    assert back.prev is None


async def test_thousands_in_one_millisecond_hold_nothing_up(store: Store, people: People, raw: "redis.Redis") -> None:
    """More ties than are looked at in one step: all in common is found, both ways."""
    ann, bob, *others = await people.users(12)
    for uid in (ann, bob):
        strangers = [f"{uid[: 8 + i % 4]}{i:05}" for i in range(10_000)]
        raw.zadd(f"{{core}}:followers:{uid}", dict.fromkeys(strangers + others, 1_795_000_000_000))
    page = await store.relations.list_common_followers(ann, ann, bob, PageRequest(4))
    rest = await store.relations.list_common_followers(ann, ann, bob, PageRequest(30, before=page.next))
    assert ids(page) + ids(rest) == sorted(others, reverse=True)
    back = await store.relations.list_common_followers(ann, ann, bob, PageRequest(30, after=rest.prev))
    assert ids(back) == ids(page)


async def test_a_cursor_belongs_to_its_pair(store: Store, people: People) -> None:
    """The cursor of one pair, in one order, is none of another's."""
    ann, bob, carl, dora = await people.users(4)
    for uid in (ann, bob):
        for other in (carl, dora):
            await store.follows.follow(uid, other, IdempotencyKey.generate())
    cursor = (await store.relations.list_common_following(ann, ann, bob, PageRequest(1))).next
    assert cursor is not None
    assert ids(await store.relations.list_common_following(ann, ann, bob, PageRequest(1, before=cursor))) == [carl]
    for read, pair in (("list_common_following", (bob, ann)), ("list_common_followers", (ann, bob))):
        with pytest.raises(InvalidCursor):
            await getattr(store.relations, read)(ann, *pair, PageRequest(1, before=cursor))


async def test_reading_changes_nothing(store: Store, people: People, raw: "redis.Redis") -> None:
    """No list and no relationship leaves a key behind."""
    ann, bob, carl = await people.users(3)
    await protect(store, bob)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.blocks.block(ann, carl, IdempotencyKey.generate())
    await store.mutes.mute(ann, carl, IdempotencyKey.generate())
    before = whole(raw), raw.dbsize()
    for one, other in ((ann, bob), (bob, ann)):
        await store.relations.get_relationship(one, one, other)
        await store.relations.list_common_following(one, one, other, PageRequest())
        await store.relations.list_common_followers(one, one, other, PageRequest())
    for page in (
        store.follow_requests.list_received,
        store.follow_requests.list_sent,
        store.blocks.list_blocked,
        store.mutes.list_muted,
    ):
        await page(ann, PageRequest())
    assert (whole(raw), raw.dbsize()) == before
