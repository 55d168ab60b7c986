"""Follows: both sides, both counters and the event change together."""

import json
from typing import Any

import pytest
import redis

from stream_server.errors import BadRequest, Conflict, InvalidCursor, NotFound
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint


async def test_follow_changes_both_sides_and_tells(store: Store, people: People) -> None:
    """The event carries both users as they are after it, in the bytes that a look-up gives."""
    ann, bob = await people.users(2)
    answer = await store.follows.follow(ann, bob, IdempotencyKey.generate())
    assert json.loads(answer) == {"following": True, "requested": False}
    entry, notice = await store.log.read(LOG_START, 10)
    assert (entry.kind, entry.audience) == ("follow", "public")
    assert (notice.kind, notice.audience) == ("notification", f"users:{bob}")
    source, target = await store.users.get_many(ann, [ann, bob])
    assert entry.body == b'{"wire":{"source":%b,"target":%b}}' % (source, target)
    assert (json.loads(source)["following"], json.loads(target)["followers"]) == (1, 1)


async def test_unfollow_undoes_it(store: Store, people: People) -> None:
    """Both counters are back, both lists empty, and the event says so."""
    ann, bob = await people.users(2)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    answer = await store.follows.unfollow(ann, bob, IdempotencyKey.generate())
    assert json.loads(answer) == {"following": False, "requested": False}
    entry = (await store.log.read(LOG_START, 10))[-1]
    source, target = await store.users.get_many(ann, [ann, bob])
    assert entry.kind == "unfollow"
    assert entry.body == b'{"wire":{"source":%b,"target":%b}}' % (source, target)
    assert (json.loads(source)["following"], json.loads(target)["followers"]) == (0, 0)
    assert (await store.user_graphs.get_graph(ann)).following == {}


async def test_twice_is_once(store: Store, people: People) -> None:
    """What is so already changes nothing and tells nobody."""
    ann, bob = await people.users(2)
    for _ in range(3):
        await store.follows.follow(ann, bob, IdempotencyKey.generate())
    assert (await people.me(bob))["followers"] == 1
    for _ in range(3):
        await store.follows.unfollow(ann, bob, IdempotencyKey.generate())
    assert (await people.me(bob))["followers"] == 0
    assert [entry.kind for entry in await store.log.read(LOG_START, 10)] == ["follow", "notification", "unfollow"]


@pytest.mark.parametrize("verb", ["follow", "unfollow"])
async def test_refusals_change_nothing(store: Store, people: People, raw: "redis.Redis", verb: str) -> None:
    """Oneself, the unknown, and an unknown oneself are refused by name."""
    ann = await people.user("Ann")
    before = footprint(raw)
    change = getattr(store.follows, verb)
    with pytest.raises(BadRequest) as oneself:
        await change(ann, ann, IdempotencyKey.generate())
    with pytest.raises(NotFound) as unknown:
        await change(ann, "1", IdempotencyKey.generate())
    with pytest.raises(NotFound) as nobody:
        await change("1", ann, IdempotencyKey.generate())
    assert [error.value.param for error in (oneself, unknown, nobody)] == ["id", "id", None]
    assert footprint(raw) == before


async def test_a_batch_tells_each_outcome(store: Store, people: People, raw: "redis.Redis") -> None:
    """One that cannot be does not keep the others from being done; the same request again does nothing."""
    ann, bob, carl, dora = await people.users(4)
    await store.follows.follow(ann, dora, IdempotencyKey.generate())
    request = IdempotencyKey.from_client(ann, "k", b"batch")
    outcomes = await store.follows.change_many(ann, [bob, "1", ann, carl], [dora, carl], request)
    assert outcomes == [
        (bob, "followed"), ("1", "not_found"), (ann, "oneself"), (carl, "followed"),
        (dora, "unfollowed"), (carl, "unfollowed"),
    ]  # fmt: skip
    assert set((await store.user_graphs.get_graph(ann)).following) == {bob}
    before = footprint(raw)
    assert await store.follows.change_many(ann, [bob, "1", ann, carl], [dora, carl], request) == outcomes
    assert footprint(raw) == before
    with pytest.raises(Conflict):
        await store.follows.change_many(ann, [carl], [], IdempotencyKey.from_client(ann, "k", b"other"))
    with pytest.raises(NotFound):
        await store.follows.change_many("1", [carl], [], IdempotencyKey.generate())
    assert await store.follows.change_many(ann, [], [], IdempotencyKey.generate()) == []


async def test_a_batch_tells_who_is_asked_and_who_is_blocked(store: Store, people: People) -> None:
    """Each way of not following has its own word; who blocks oneself is as good as not there."""
    ann, bob, carl, dora, eve = await people.users(5)
    await store.users.update(bob, {"protected": True}, IdempotencyKey.generate())
    await store.blocks.block(ann, carl, IdempotencyKey.generate())
    await store.blocks.block(dora, ann, IdempotencyKey.generate())
    outcomes = await store.follows.change_many(ann, [bob, carl, dora, eve], [], IdempotencyKey.generate())
    assert outcomes == [(bob, "requested"), (carl, "blocked"), (dora, "not_found"), (eve, "followed")]
    assert await store.follows.change_many(ann, [], [bob, dora], IdempotencyKey.generate()) == [
        (bob, "unfollowed"), (dora, "not_found"),
    ]  # fmt: skip
    assert await store.follows.change_many(ann, [carl], [], IdempotencyKey.generate()) == [(carl, "blocked")]


async def test_a_key_is_for_one_batch(store: Store, people: People, raw: "redis.Redis") -> None:
    """A longer batch under the same key is refused as a whole, also where its first parts left no answer."""
    ann, bob, carl = await people.users(3)
    for follow in (["1"], [bob]):
        key = f"k{follow[0]}"
        await store.follows.change_many(ann, follow, [], IdempotencyKey.from_client(ann, key, b"short"))
        before = footprint(raw)
        with pytest.raises(Conflict):
            await store.follows.change_many(ann, [*follow, carl], [], IdempotencyKey.from_client(ann, key, b"long"))
        assert footprint(raw) == before


async def test_a_batch_that_broke_off_tells_what_was_done(
    store: Store, people: People, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis took the first and not the rest: each is told, and the same request again does only what was left."""
    ann, bob, carl = await people.users(3)
    request = IdempotencyKey.from_client(ann, "k", b"batch")
    write_each = store._scripts.write_each

    async def broken_off(writes: Any) -> Any:
        done = await write_each(writes[:1])
        raw.config_set("maxmemory", 1)
        try:
            return done + await write_each(writes[1:])
        finally:
            raw.config_set("maxmemory", 0)

    monkeypatch.setattr(store._scripts, "write_each", broken_off)
    assert await store.follows.change_many(ann, [bob, carl], [], request) == [(bob, "followed"), (carl, "unavailable")]
    monkeypatch.undo()
    before = (await people.me(bob))["followers"]
    assert await store.follows.change_many(ann, [bob, carl], [], request) == [(bob, "followed"), (carl, "followed")]
    assert ((await people.me(bob))["followers"], (await people.me(carl))["followers"]) == (before, 1)


async def test_following_and_the_head_agree(store: Store, people: People) -> None:
    """The set comes with the position up to which it is true: that of the last entry, not of the last id."""
    ann, bob = await people.users(2)
    assert await store.user_graphs.get_graph(ann) == ({}, {}, {}, {}, {}, LOG_START)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await people.user("later")
    viewer = await store.user_graphs.get_graph(ann)
    assert set(viewer.following) == {bob}
    assert viewer.head == await store.log.head() == (await store.log.read(LOG_START, 10))[-1].position


async def test_pages_miss_nobody_also_within_one_millisecond(store: Store, people: People, raw: "redis.Redis") -> None:
    """Followers that began in the same millisecond are told apart by their ids, both ways."""
    star, *fans = await people.users(12)
    for i, fan in enumerate(fans):
        await store.follows.follow(fan, star, IdempotencyKey.generate())
        raw.zadd(f"{{core}}:followers:{star}", {fan: 1_795_000_000_000 + i // 5})
    expected = sorted(fans, key=lambda fan: (fans.index(fan) // 5, fan), reverse=True)
    seen: list[str] = []
    backward: list[str] = []
    before: str | None = None
    while True:
        page = await store.follows.list_followers(star, star, PageRequest(3, before=before))
        seen += _ids(page)
        assert (page.prev is None) == (before is None)
        if page.next is None:
            break
        before = page.next
    assert seen == expected
    after = page.prev
    backward = _ids(page)
    while after is not None:
        page = await store.follows.list_followers(star, star, PageRequest(4, after=after))
        backward = _ids(page) + backward
        after = page.prev
    assert backward == expected


async def test_a_page_tells_since_when(store: Store, people: People) -> None:
    """Each of the list is a user, with when it began."""
    ann, bob = await people.users(2)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    (entry,) = await store.log.read(LOG_START, 1)
    (followed,) = (await store.follows.list_following(ann, ann, PageRequest())).items
    (follower,) = (await store.follows.list_followers(ann, bob, PageRequest())).items
    assert json.loads(followed)["id"] == bob
    assert json.loads(follower)["since"] == json.loads(entry.message_json())["at"]


async def test_bad_pages_are_refused(store: Store, people: People) -> None:
    """A made-up cursor, one of another list, and an unknown user are told."""
    ann, bob, carl = await people.users(3)
    for fan in (bob, carl):
        await store.follows.follow(fan, ann, IdempotencyKey.generate())
    elsewhere = (await store.follows.list_followers(ann, ann, PageRequest(1))).next
    assert elsewhere is not None
    for cursor in ("", "x", "1", "1-", "-1-2", "1-2-3", "1e3-2", "1-2\n", elsewhere):
        with pytest.raises(InvalidCursor) as refusal:
            await store.follows.list_followers(ann, bob, PageRequest(3, before=cursor))
        assert refusal.value.param == "before"
        with pytest.raises(InvalidCursor) as refusal:
            await store.follows.list_following(ann, ann, PageRequest(3, after=cursor))
        assert refusal.value.param == "after"
    with pytest.raises(NotFound):
        await store.follows.list_followers(ann, "1", PageRequest(3))
    assert await store.follows.list_followers(ann, bob, PageRequest(3)) == ([], None, None)


def _ids(page: Page) -> list[str]:
    return [json.loads(user)["id"] for user in page.items]
