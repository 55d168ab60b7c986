"""The relationship of two users, and the users that both follow or that follow both."""

import json
import random

import pytest
import redis

from stream_server.errors import InvalidCursor
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import ids, items_of, read_pages

COMMON = ["list_common_following", "list_common_followers"]


async def test_common_following_and_followers(store: Store, people: People) -> None:
    ann, bob, carl, *others = await people.users(9)
    for other in others:
        for uid in (ann, bob):
            await store.follows.follow(uid, other, new_key())
            await store.follows.follow(other, uid, new_key())
    await store.follows.follow(ann, carl, new_key())
    await store.follows.follow(carl, bob, new_key())
    await store.blocks.block(others[1], carl, new_key())
    await store.suspensions.suspend(ann, others[2], new_key())
    expected = [others[i] for i in (5, 4, 3, 0)]
    for read, list_of in ((store.relations.list_common_following, store.follows.list_following),
                          (store.relations.list_common_followers, store.follows.list_followers)):  # fmt: skip
        page = await read(carl, ann, bob, PageRequest())
        assert ids(page) == expected
        since = {
            json.loads(item)["id"]: json.loads(item)["since"]
            for item in items_of(await list_of(ann, ann, PageRequest()))
        }
        assert [json.loads(item)["since"] for item in items_of(page)] == [since[uid] for uid in expected]
        assert ids(await read(others[0], ann, bob, PageRequest())) == [others[i] for i in (5, 4, 3, 1, 0)]
    alone = await people.user("alone")
    assert await store.relations.list_common_following(carl, carl, alone, PageRequest()) == (b"", None, None)


@pytest.mark.parametrize("sizes", [(40, 40), (5000, 40), (40, 5000), (9000, 9000)], ids=str)
@pytest.mark.parametrize("read", COMMON)
async def test_pages_are_exact_for_sets_of_any_size(
    store: Store, people: People, raw: "redis.Redis", read: str, sizes: tuple[int, int]
) -> None:
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
    pages = await read_pages(lambda request: asked(ann, ann, bob, request), 7)
    assert [uid for page in pages for uid in ids(page)] == [uid for _, uid in expected]
    assert [len(items_of(page)) for page in pages] == [7, 7, 6]
    back = await asked(ann, ann, bob, PageRequest(200, after=pages[-1].prev))
    assert ids(back) == [uid for _, uid in expected[:14]]
    assert back.prev is None


async def test_thousands_in_one_millisecond_are_paged(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, *others = await people.users(12)
    for uid in (ann, bob):
        strangers = [f"{uid[: 8 + i % 4]}{i:05}" for i in range(10_000)]
        raw.zadd(f"{{core}}:followers:{uid}", dict.fromkeys(strangers + others, 1_795_000_000_000))
    page = await store.relations.list_common_followers(ann, ann, bob, PageRequest(4))
    rest = await store.relations.list_common_followers(ann, ann, bob, PageRequest(30, before=page.next))
    assert ids(page) + ids(rest) == sorted(others, reverse=True)
    back = await store.relations.list_common_followers(ann, ann, bob, PageRequest(30, after=rest.prev))
    assert ids(back) == ids(page)


async def test_a_cursor_of_another_pair_is_refused(store: Store, people: People) -> None:
    ann, bob, carl, dora = await people.users(4)
    for uid in (ann, bob):
        for other in (carl, dora):
            await store.follows.follow(uid, other, new_key())
    cursor = (await store.relations.list_common_following(ann, ann, bob, PageRequest(1))).next
    assert cursor is not None
    assert ids(await store.relations.list_common_following(ann, ann, bob, PageRequest(1, before=cursor))) == [carl]
    for read, pair in (("list_common_following", (bob, ann)), ("list_common_followers", (ann, bob))):
        with pytest.raises(InvalidCursor):
            await getattr(store.relations, read)(ann, *pair, PageRequest(1, before=cursor))
