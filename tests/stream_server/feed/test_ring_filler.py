"""The ring of a feed that has just started has what is on the log, within its bounds and whatever happens meanwhile."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.feed import log_reader
from stream_server.feed.log_reader import fill_ring
from stream_server.store import keys
from tests.stream_server.feed.conftest import NEVER
from tests.stream_server.feed.node import LIMITS, LogWriter, Node, now_ms
from tests.stream_server.feed.returning_client import ReturningClient

POSTS = 60


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "MAX_PAGE_ENTRIES", 7)


@asynccontextmanager
async def started(url: str, **limits: Any) -> AsyncIterator[Node]:
    """Start a feed on the log as it is, with an empty ring. Its canary never checks."""
    node = Node(url, NEVER, replace(LIMITS, **limits))
    await node.open()
    assert node.received() == []
    yield node
    await node.close()


async def fill(node: Node, after_read: Callable[[], object] = lambda: None) -> None:
    """Fill the ring. ``after_read`` is called when a page was read and is not in the ring yet."""

    class Reader:
        async def read_back(self, last: Position, most: int) -> list[Entry]:
            page = await node.reader.read_back(last, most)
            after_read()
            return page

    await fill_ring(Reader().read_back, node.hub.ring)


async def expect_posts(node: Node, since: Position, posts: dict[Position, str]) -> list[str]:
    """Return the reasons of the gaps that a client at ``since`` gets. It must get exactly the ``posts`` after it."""
    client = ReturningClient()
    client.cursor = since.cursor
    await client.connect(node)
    await client.expect_cursor(node.hub.head)
    client.disconnect()
    assert client.kept == [(place.n, text) for place, text in posts.items() if place > since]
    return client.gaps


def write_posts(writer: LogWriter, count: int = POSTS) -> dict[Position, str]:
    """Write posts, and return their texts by position."""
    return {writer.write(): f"text {writer.texts}" for _ in range(count)}


def write_delete(writer: LogWriter, status: str) -> Position:
    """Delete a status as the scripts do: the status and the entry together."""
    writer.client.delete(keys.key_for("status", status))
    wire = {"status": {"id": status, "uid": "7", "deleted": True}}
    return writer.write(msgspec.json.encode({"wire": wire}), kind="delete")


async def test_a_ring_is_filled_while_entries_arrive(
    writer: LogWriter, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    posts = write_posts(writer)
    async with started(redis_url) as node:
        await fill(node, lambda: posts.update(write_posts(writer, 1)))
        await node.expect_received(list(posts)[1:])
        assert len(posts) > POSTS
        monkeypatch.setattr(node.reader, "read_page", None)  # nobody reads the log
        for since in posts:
            assert await expect_posts(node, since, posts) == []


@pytest.mark.parametrize("page", [5, 512])
async def test_a_ring_is_filled_within_its_bounds(
    writer: LogWriter, redis_url: str, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(log_reader, "MAX_PAGE_ENTRIES", page)
    positions = list(write_posts(writer))
    async with started(redis_url) as node:
        await fill(node)
        entry_bytes = node.hub.ring.size_bytes / (POSTS - 1)
    async with started(redis_url, ring_bytes=round(20.5 * entry_bytes)) as node:
        await fill(node)
        assert node.received() == positions[-20:]
        positions.append(writer.write())
        await node.expect_received(positions[-20:])
    for limits in ({"ring_bytes": 0}, {"ring_seconds": 0.0}):
        async with started(redis_url, **limits) as node:
            await fill(node)
            assert node.received() == []


async def test_a_ring_is_filled_with_recent_entries_only(writer: LogWriter, redis_url: str) -> None:
    writer.ahead_ms = -100_000
    write_posts(writer)
    writer.ahead_ms = 0
    recent = list(write_posts(writer))
    async with started(redis_url, ring_seconds=50.0) as node:
        await fill(node)
        assert node.received() == recent
        assert recent[0].ms > now_ms() - 50_000


async def test_a_filled_ring_begins_where_a_trimmed_log_begins(writer: LogWriter, redis_url: str) -> None:
    posts = write_posts(writer)
    positions = list(posts)
    writer.client.xtrim(keys.LOG, maxlen=20, approximate=False)
    kept = {place: posts[place] for place in positions[-20:]}
    async with started(redis_url) as node:
        await fill(node)
        assert node.received() == positions[-19:]
        for since, gaps in ((5, ["trimmed"]), (-21, []), (-20, []), (-19, [])):
            assert await expect_posts(node, positions[since], kept) == gaps


async def test_a_filled_ring_shows_nothing_that_was_deleted(writer: LogWriter, redis_url: str) -> None:
    """The deletes come before and after the start; one delete has left the log, so only the status shows it."""
    posts = write_posts(writer)
    positions = list(posts)
    writer.client.delete(keys.key_for("status", "3"))
    write_delete(writer, "30")
    async with started(redis_url) as node:
        await fill(node)
        last = write_delete(writer, "40")
        await node.expect_received([*writer.positions()[1:]])
        assert node.hub.head == last
        for n in (3, 30, 40):
            del posts[positions[n - 1]]
        assert await expect_posts(node, positions[0], posts) == []


@pytest.mark.parametrize("is_noticed", [False, True])
async def test_a_filled_ring_has_nothing_that_was_lost_meanwhile(
    writer: LogWriter, redis_url: str, *, is_noticed: bool
) -> None:
    """While the ring is filled, the log loses its end up to below the pages that were read, and goes on otherwise."""
    posts = write_posts(writer)
    async with started(redis_url) as node:
        reads = 0

        def lose() -> None:
            nonlocal reads
            reads += 1
            if reads == 2:
                for lost in writer.lose(30, links=is_noticed):
                    del posts[lost]
                posts.update(write_posts(writer, 10))

        await fill(node, lose)
        assert reads > 1
        await node.feed.detector.recheck()
        last = writer.write()
        posts[last] = f"text {writer.texts}"
        await node.feed.link_health.healthy.wait()
        received = len(node.received())
        await node.expect_received(writer.positions()[-received:])
        await expect_posts(node, next(iter(posts)), posts)


async def test_a_ring_stays_as_it_is_while_redis_is_away(writer: LogWriter, redis_url: str) -> None:
    posts = write_posts(writer)
    async with started(redis_url) as node:

        def be_away() -> None:
            raise Unavailable("redis is away", retry_after=1)

        await fill(node, be_away)
        assert node.received() == []
        posts |= write_posts(writer, 3)
        await node.expect_received(list(posts)[-3:])
        assert await expect_posts(node, next(iter(posts)), posts) == []
