"""Reads: pages equal a plain list, one moment is one, a full Redis serves them, and they see all answered writes."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
import redis
from hiredis import pack_command

from stream_server.errors import InternalError, NotFound
from stream_server.events.visibility import Visibility
from stream_server.store.pagination import (
    MAX_SHOWN,
    Member,
    Page,
    PageRequest,
    Show,
    fill_page,
    read_members,
    read_page,
)
from stream_server.store.reads import statuses
from stream_server.store.reads.sight import Sight
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.protocol import KeyRead, pack_set_read, pack_words
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import items_of
from tests.waiting import PATIENCE

KEY = "{core}:following:7"


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisClient]:
    client = RedisClient(redis_url, PATIENCE)
    yield client
    await client.close()


def showing(hidden: set[bytes]) -> Show:
    """Show each member as a JSON string, without the hidden ones."""

    async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
        return [None if member in hidden else b'"%b"' % member for member, _ in members]

    return show


@pytest.mark.parametrize("seed", range(12))
async def test_pages_equal_a_plain_list_cut_in_pieces(link: RedisClient, raw: "redis.Redis", seed: int) -> None:
    """Members have few scores, so many stand together. Most are hidden in some runs, so that a page reads on."""
    source = random.Random(seed)
    scores = {f"m{number:03}".encode(): source.randrange(1, 9) for number in range(source.choice((1, 40, 200)))}
    raw.zadd(KEY, dict(scores))
    hidden = {member for member in scores if source.random() < source.choice((0.1, 0.9))}
    oldest_first, count = bool(seed % 2), source.choice((1, 2, 7, 30))
    seen = [member for _, member in sorted((score, member) for member, score in scores.items()) if member not in hidden]
    expected = [b'"%b"' % member for member in (seen if oldest_first else seen[::-1])]

    async def read(**where: Any) -> Page:
        return await read_page(link, KEY, PageRequest(count, **where), showing(hidden), oldest_first=oldest_first)

    page, pages = await read(), list[Page]()
    while True:
        pages.append(page)
        if page.next is None:
            break
        gone = items_of(page)[-1].strip(b'"')  # a member that leaves keeps its place in the cursor
        raw.zrem(KEY, gone)
        following = await read(before=page.next)
        raw.zadd(KEY, {gone: scores[gone]})
        assert following == await read(before=page.next)
        page = following
    assert [item for page in pages for item in items_of(page)] == expected
    assert all(len(items_of(page)) == count for page in pages[:-1])
    for earlier, later in pairwise(pages):
        assert later.prev is not None
        assert items_of(await read(after=later.prev)) == items_of(earlier)
    number = source.randrange(1, 5)
    assert items_of(await read(page=number)) == expected[(number - 1) * count : number * count]


async def test_a_page_examines_so_many_members_and_its_cursor_goes_on(link: RedisClient, raw: "redis.Redis") -> None:
    raw.zadd(KEY, {str(number): number for number in range(1, 501)})

    async def read_some(after: Any, most: int, down: bool) -> Any:  # noqa: FBT001 - `ReadMembers`
        return (await read_members(link, KEY, after, most, down=down))[0]

    show = showing({b"%d" % number for number in range(9, 501)})
    page = await fill_page(PageRequest(5), KEY, read_some, show, max_examined=300)
    assert (items_of(page), page.prev) == ([], None)
    assert page.next is not None
    page = await read_page(link, KEY, PageRequest(5, before=page.next), show)
    assert items_of(page) == [b'"8"', b'"7"', b'"6"', b'"5"', b'"4"']


async def test_a_page_shows_few_members_at_once_and_skips_many(link: RedisClient, raw: "redis.Redis") -> None:
    """Skipped members do not count as examined, so a late page is full."""
    raw.zadd(KEY, {str(number): number for number in range(1, 6001)})
    sizes = list[int]()

    async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
        sizes.append(len(members))
        return [member for member, _ in members]

    page = await read_page(link, KEY, PageRequest(50, page=100), show)
    assert [int(item) for item in items_of(page)] == [*range(1050, 1000, -1)]
    assert max(sizes) == MAX_SHOWN


async def test_facts_are_never_older_than_the_texts(store: Store) -> None:
    """A page reads more texts after it knows their author from others."""
    people = People(store)
    ann, bob = await people.users(2)
    sight, author = Sight(store._redis, bob), ann.encode()
    await sight.learn([author])
    assert sight.of(author) is Visibility.VISIBLE
    await store.users.update(ann, {"protected": True}, new_key())
    await sight.learn([author])
    assert sight.of(author) is Visibility.HIDDEN


@pytest.mark.parametrize("members", [[b"", b"1", b"twenty-two bytes of it"], [b"12", b"\r\n", b"$4"], [b"one"], []])
def test_packed_commands_are_those_of_hiredis(members: list[bytes]) -> None:
    """Also of members that have one length, which are packed together."""
    read = KeyRead(b"HMGET", b"{core}:50%:", b"100%", b"a\r\nb")
    assert read.command(b"42") == packed_by_hiredis(b"HMGET", b"{core}:50%:42", b"100%", b"a\r\nb")
    packed = pack_set_read(b"ZMSCORE", b"key", pack_words(members), len(members))
    assert packed == packed_by_hiredis(b"ZMSCORE", b"key", *members)


def packed_by_hiredis(*words: bytes) -> bytes:
    packed: bytes = pack_command(words)  # type: ignore[arg-type]  # any length
    return packed


LONG = 3000


async def test_replies_at_once_are_of_one_moment(link: RedisClient, redis_url: str, raw: "redis.Redis") -> None:
    """One of two keys exists at any moment. The questions about both are so far apart that others run in between."""
    other = RedisClient(redis_url, PATIENCE)
    raw.set("{core}:one", "1")
    turns = [("{core}:one", "{core}:two"), ("{core}:two", "{core}:one")]
    is_over = False

    async def swap() -> None:
        while not is_over:
            for gone, made in turns:
                await other.execute(("MULTI",), ("DEL", gone), ("SET", made, "1"), ("EXEC",))

    swapping = asyncio.create_task(swap())
    commands = [("EXISTS", "{core}:one"), *[("EXISTS", "{core}:none")] * LONG, ("EXISTS", "{core}:two")]
    try:
        for _ in range(40):
            found = await link.execute_at_once(*commands)
            assert (len(found), sum(found)) == (LONG + 2, 1)
    finally:
        is_over = True
        await swapping
        await other.close()


async def test_a_refused_command_fails_what_is_read_at_once(link: RedisClient, raw: "redis.Redis") -> None:
    raw.set("{core}:text", "no set")
    with pytest.raises(InternalError):
        await link.execute_at_once(("EXISTS", "{core}:text"), ("ZCARD", "{core}:text"))


@pytest.fixture
def _memory_limit_is_lifted(raw: Any) -> Iterator[None]:
    yield
    raw.config_set("maxmemory", 0)


@pytest.mark.usefixtures("_memory_limit_is_lifted")
async def test_a_full_redis_serves_reads(redis_url: str, raw: Any) -> None:
    async with open_store(redis_url) as store:
        people = People(store)
        ann, bob = await people.users(2)
        await store.follows.follow(bob, ann, new_key())
        status = (await people.status(ann))["id"]
        await store.likes.like(bob, status, new_key())
        raw.config_set("maxmemory", 1)
        sight = Sight(store._redis, bob)
        assert len(await statuses.show(sight, [status.encode()], Visibility.VISIBLE)) == 1
        assert len(items_of(await store.timelines.read_home(bob, PageRequest()))) == 1
        assert len(items_of(await store.follows.list_followers(bob, ann, PageRequest()))) == 1
        assert await store.likes.has_liked(bob, status)
        assert (await store.notifications.list_with_unread_count(ann, PageRequest()))[1] == 2
        assert (await store.relations.get_relationship(bob, bob, ann)).following
        assert await store.rules.get_all(ann) == ([], await store.log.head())


@pytest.mark.parametrize("is_same", [True, False])
async def test_a_read_sees_every_write_that_was_answered(redis_url: str, is_same: bool) -> None:  # noqa: FBT001 - a case
    """The reading process, which may be the writing one, has a replica that never answers. Reads do not ask it."""
    async with open_store(redis_url) as other, open_store(redis_url, replica_urls="redis://127.0.0.1:1") as reader:
        writer = reader if is_same else other
        router = reader.log.replica_router
        router.current = reader.replicas[0].client
        people = People(writer)
        ann, bob = await people.users(2)
        for _ in range(20):
            await writer.follows.follow(bob, ann, new_key())
            status = (await people.status(ann))["id"]
            assert await _newest(reader, bob) == status
            await writer.mutes.mute(bob, ann, new_key())
            assert await _newest(reader, bob) != status
            await writer.mutes.unmute(bob, ann, new_key())
            await writer.blocks.block(ann, bob, new_key())
            with pytest.raises(NotFound):
                await reader.statuses.get(bob, status)
            with pytest.raises(NotFound):
                await reader.users.get(bob, ann)
            await writer.blocks.unblock(ann, bob, new_key())
            await writer.users.update(ann, {"protected": True}, new_key())
            with pytest.raises(NotFound):
                await reader.statuses.get(bob, status)
            await writer.users.update(ann, {"protected": False}, new_key())
            assert await reader.statuses.get(bob, status)
            await writer.statuses.delete(ann, status, new_key())
            with pytest.raises(NotFound):
                await reader.statuses.get(bob, status)


async def _newest(store: Store, uid: str) -> str:
    items = items_of(await store.timelines.read_home(uid, PageRequest(count=1)))
    return items[0].split(b'"')[3].decode() if items else ""


async def test_a_message_is_judged_by_facts_that_are_read_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Just before a page is read, the viewer blocks another, who then writes in their talk of three."""
    people = People(store)
    ann, bob, carl = await people.users(3)
    talk = json.loads((await store.talks.open(ann, [bob, carl], None, new_key()))[0])["id"]
    for uid in (bob, carl):
        await store.talks.send_message(uid, talk, "before", new_key())
    execute = RedisClient.execute

    async def interrupted(link: RedisClient, *commands: Any, **more: Any) -> list[Any]:
        if any(command[0] == "ZRANGE" for command in commands):  # the ids of the page
            monkeypatch.setattr(RedisClient, "execute", execute)
            await store.blocks.block(ann, carl, new_key())
            await store.talks.send_message(carl, talk, "after", new_key())
        return await execute(link, *commands, **more)

    monkeypatch.setattr(RedisClient, "execute", interrupted)
    page = await store.talks.list_messages(ann, talk, PageRequest())
    assert [json.loads(item)["uid"] for item in items_of(page)] == [bob]
