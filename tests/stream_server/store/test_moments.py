"""A read shows no text that no moment allowed: one that was deleted before its author was visible to the reader."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from stream_server.errors import NotFound
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.client import RedisClient
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import RedisDump
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import items_of
from tests.tiers import quick

SECRET = "nobody may read this"


class Stage:
    """Ann's status, and Bob, who reads. Carl blocks Bob, and writes a secret that he deletes before he ends that."""

    ann: str
    bob: str
    carl: str
    status: str
    quote: str
    secret: str
    said: str

    async def set(self, store: Store) -> None:
        people = People(store)
        self.ann, self.bob, self.carl = await people.users(3)
        self.status = (await people.status(self.ann))["id"]
        await store.blocks.block(self.carl, self.bob, new_key())

    async def write(self, store: Store) -> None:
        """Write what Bob must not read: a status and Ann's quote of it, which remains, and a comment."""
        people = People(store)
        self.secret = (await people.status(self.carl, f"{SECRET} @u1 #tea"))["id"]
        self.quote = (await people.status(self.ann, "see", origin=self.secret))["id"]
        made = await store.comments.create(self.carl, self.status, f"{SECRET} @u1", new_key())
        self.said = str(json.loads(made)["id"])

    async def delete(self, store: Store) -> None:
        await store.statuses.delete(self.carl, self.secret, new_key())
        await store.comments.delete(self.carl, self.said, new_key())

    async def open(self, store: Store) -> None:
        await store.blocks.unblock(self.carl, self.bob, new_key())


async def _items(page: Awaitable[Any]) -> bytes:
    return b"".join(items_of(await page))


Read = Callable[[Store, Stage], Awaitable[bytes]]
ALL = PageRequest(count=50)
READS: dict[str, Read] = {
    "a status": lambda s, x: s.statuses.get(x.bob, x.secret),
    "a quote": lambda s, x: s.statuses.get(x.bob, x.quote),
    "a profile": lambda s, x: _items(s.timelines.read_profile(x.bob, x.carl, ALL)),
    "a profile with a quote": lambda s, x: _items(s.timelines.read_profile(x.bob, x.ann, ALL)),
    "a tag": lambda s, x: _items(s.timelines.read_tag(x.bob, "tea", ALL)),
    "mentions": lambda s, x: _items(s.timelines.read_mentions(x.bob, ALL)),
    "a comment": lambda s, x: s.comments.get(x.bob, x.said),
    "comments": lambda s, x: _items(s.comments.list_comments(x.bob, x.status, ALL)),
    "notifications": lambda s, x: _items(s.notifications.list_notifications(x.bob, ALL)),
}


def between_text_and_facts(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Awaitable[None]]) -> list[str]:
    """Let ``change`` happen once, between the reply that has the secret and the next question about facts.

    Returns a list that has an item when it has happened.
    """
    execute, ask = RedisClient.execute, RedisClient.execute_at_once
    happened, has_text = list[str](), False

    async def noted(link: RedisClient, *commands: Any, **more: Any) -> list[Any]:
        nonlocal has_text
        replies = await execute(link, *commands, **more)
        has_text = has_text or SECRET in str(replies)
        return replies

    async def late(link: RedisClient, *commands: Any) -> list[Any]:
        if has_text and not happened:
            happened.append("changed")
            await change()
        return await ask(link, *commands)

    monkeypatch.setattr(RedisClient, "execute", noted)
    monkeypatch.setattr(RedisClient, "execute_at_once", late)
    return happened


@pytest.mark.parametrize("name", sorted(READS.keys() - {"a profile"}))
async def test_a_text_that_goes_before_its_author_is_visible_is_not_shown(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The profile itself is unknown to whom its user blocks, so it is read in the race only."""
    stage = Stage()
    await stage.set(store)
    await stage.open(store)
    await stage.write(store)  # with its notifications
    await store.blocks.block(stage.carl, stage.bob, new_key())

    async def go_on() -> None:
        await stage.delete(store)
        await stage.open(store)

    happened = between_text_and_facts(monkeypatch, go_on)
    with suppress(NotFound):
        assert SECRET.encode() not in await READS[name](store, stage)
    assert happened


PAGES = ("a profile with a quote", "a tag", "mentions")


@pytest.mark.parametrize("name", PAGES)
async def test_a_text_that_an_older_copy_of_redis_never_had_is_not_shown(
    store: Store, raw: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Redis loses the block and the secret while the page is read, and so the copy has no fact against the secret."""
    stage, people = Stage(), People(store)
    await stage.set(store)
    await stage.open(store)
    await store.statuses.delete(stage.ann, (await people.status(stage.ann))["id"], new_key())
    older = RedisDump(raw)
    await store.blocks.block(stage.carl, stage.bob, new_key())
    await stage.write(store)

    async def fail_over() -> None:
        older.restore()

    happened = between_text_and_facts(monkeypatch, fail_over)
    assert SECRET.encode() not in await READS[name](store, stage)
    assert happened


@pytest.mark.parametrize("after", ["no other delete", "the lost delete again"])
@pytest.mark.parametrize("name", PAGES)
async def test_a_text_that_goes_from_an_older_copy_of_redis_is_not_shown(
    store: Store, raw: Any, monkeypatch: pytest.MonkeyPatch, name: str, after: str
) -> None:
    """Redis loses the delete of another status, and then as many statuses have gone from the copy as before.

    Or the other status goes again, so that the copy too has it as the last one that went.
    """
    stage, people = Stage(), People(store)
    await stage.set(store)
    await stage.open(store)
    await stage.write(store)
    await store.blocks.block(stage.carl, stage.bob, new_key())
    other = (await people.status(stage.ann))["id"]
    older = RedisDump(raw)
    await store.statuses.delete(stage.ann, other, new_key())

    async def fail_over() -> None:
        older.restore()
        await stage.delete(store)
        if after == "the lost delete again":
            await store.statuses.delete(stage.ann, other, new_key())
        await stage.open(store)

    happened = between_text_and_facts(monkeypatch, fail_over)
    assert SECRET.encode() not in await READS[name](store, stage)
    assert happened


async def test_comments_are_judged_by_the_facts_about_their_status_of_the_same_moment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status's author blocks the reader before another comments on it, while the page is read."""
    people = People(store)
    ann, bob, carl = await people.users(3)
    status = (await people.status(ann))["id"]
    await store.comments.create(carl, status, "before", new_key())
    execute = RedisClient.execute

    async def interrupted(link: RedisClient, *commands: Any, **more: Any) -> list[Any]:
        if any(command[0] == "ZRANGE" for command in commands):  # the ids of the page
            monkeypatch.setattr(RedisClient, "execute", execute)
            await store.blocks.block(ann, bob, new_key())
            await store.comments.create(carl, status, SECRET, new_key())
        return await execute(link, *commands, **more)

    monkeypatch.setattr(RedisClient, "execute", interrupted)
    with pytest.raises(NotFound):
        await store.comments.list_comments(bob, status, ALL)


async def test_no_read_of_a_race_shows_what_no_moment_allowed(redis_url: str) -> None:
    """The secret exists only while its author blocks the reader, and each is told from the others by its number."""
    async with open_store(redis_url) as writing, open_store(redis_url) as reading:
        stage, is_over, reads = Stage(), False, 0
        await stage.set(writing)
        await stage.write(writing)

        async def write() -> None:
            while not is_over:
                await stage.delete(writing)
                await stage.open(writing)
                await writing.blocks.block(stage.carl, stage.bob, new_key())
                await stage.write(writing)

        async def read(one: Read) -> None:
            nonlocal reads
            for _ in range(30 if quick() else 300):
                with suppress(NotFound):
                    assert SECRET.encode() not in await one(reading, stage)
                reads += 1

        task = asyncio.create_task(write())
        try:
            await asyncio.gather(*map(read, READS.values()))
        finally:
            is_over = True
            await task
        assert reads == (30 if quick() else 300) * len(READS)
