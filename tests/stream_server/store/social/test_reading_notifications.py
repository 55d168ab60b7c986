"""Reading notifications: pages, the read mark, and the number of unread ones."""

import json
from collections.abc import Sequence

import pytest

from stream_server.errors import InvalidCursor
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key, open_store, unread
from tests.stream_server.store.scenes import items_of, notifications, read_pages


async def marks(store: Store, uid: str) -> Sequence[bool]:
    return [one["read"] for one in await notifications(store, uid)]


async def test_pages_are_full_and_fit_together(store: Store, people: People) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    posts = [await people.status(bob, f"@ann {number}") for number in range(300)]
    for number, post in enumerate(posts):
        if number % 20:
            await store.statuses.delete(bob, post["id"], new_key())
    expected = [post["id"] for number, post in enumerate(posts) if not number % 20][::-1]
    pages = await read_pages(lambda request: store.notifications.list_notifications(ann, request), 4)
    assert [json.loads(item)["status"]["id"] for page in pages for item in items_of(page)] == expected
    assert {len(items_of(page)) for page in pages[:-1]} == {4}
    back = await store.notifications.list_notifications(ann, PageRequest(count=200, after=pages[-1].prev))
    assert [json.loads(item)["status"]["id"] for item in items_of(back)] == expected[: -len(items_of(pages[-1]))]


async def test_a_cursor_of_another_user_is_refused(store: Store, people: People) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    for _ in range(2):
        await people.status(bob, "@ann")
        await people.status(ann, "@bob")
    theirs = (await store.notifications.list_notifications(bob, PageRequest(count=1))).next
    for cursor in (theirs, "x", "1-2"):
        with pytest.raises(InvalidCursor):
            await store.notifications.list_notifications(ann, PageRequest(before=cursor))


async def test_only_the_newest_are_kept(redis_url: str) -> None:
    async with open_store(redis_url, size_limits=SizeLimits(timeline_max=5)) as store:
        people = People(store)
        ann, bob = [await people.user(login) for login in ("ann", "bob")]
        posts = [await people.status(bob, f"@ann {number}") for number in range(8)]
        found = await notifications(store, ann, count=200)
        assert [one["status"]["id"] for one in found] == [post["id"] for post in posts[:2:-1]]
        assert await unread(store, ann) == 5


async def test_the_read_mark_only_rises(store: Store, people: People) -> None:
    ann, bob = [await people.user(login) for login in ("ann", "bob")]
    for number in range(4):
        await people.status(bob, f"@ann {number}")
    ids = [one["id"] for one in await notifications(store, ann)][::-1]
    assert await unread(store, ann) == 4
    request = new_key()
    assert await store.notifications.mark_read(ann, ids[2], request) == 1
    assert await store.notifications.mark_read(ann, ids[2], request) == 1
    assert await store.notifications.mark_read(ann, ids[0], new_key()) == 1
    assert await marks(store, ann) == [False, True, True, True]
    assert await store.notifications.mark_read(ann, ids[3], new_key()) == 0
    await people.status(bob, "@ann again")
    assert await marks(store, ann) == [False, True, True, True, True]
    assert await unread(store, ann) == 1


async def test_beyond_a_hundred_hidden_notifications_are_counted(store: Store, people: People) -> None:
    ann, bob, eve = [await people.user(login) for login in ("ann", "bob", "eve")]
    for author in (eve, *[bob] * 128, eve):
        await people.status(author, "@ann")
    assert await unread(store, ann) == 130
    await store.mutes.mute(ann, eve, new_key())
    assert await unread(store, ann) == 129
