"""A log in which some numbers have no entry: they are no loss, and what is really lost is told all the same."""

from typing import Any

import pytest

from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.web.streaming.stream_start import resolve_start
from tests.stream_server.feed.node import LogWriter, Node
from tests.stream_server.feed.returning_client import ReturningClient


def write_after_hole(writer: LogWriter, width: int = 1, *, published: bool = True) -> Position:
    """Write an entry whose number leaves out ``width`` numbers."""
    at = writer.next_position()
    return writer.write(position=at._replace(n=at.n + width), published=published)


async def client_of(node: Node, cursor: str) -> ReturningClient:
    """Open a stream that begins behind a cursor."""
    client = ReturningClient()
    client.cursor = cursor
    await client.connect(node)
    return client


async def expect(client: ReturningClient, positions: list[Position], gaps: list[str]) -> None:
    """Wait until a client has got exactly these entries and gaps."""
    await client.expect_cursor(positions[-1])
    assert ([n for n, _ in client.kept], client.gaps) == ([position.n for position in positions], gaps)


@pytest.mark.parametrize("published", [True, False], ids=["heard", "read from the log"])
async def test_a_number_without_an_entry_is_no_gap_for_live_clients(
    node: Node, writer: LogWriter, *, published: bool
) -> None:
    positions = [writer.write()]
    client = await client_of(node, LOG_START.cursor)
    await client.expect_cursor(positions[-1])
    for width in (1, 3):
        positions += [write_after_hole(writer, width, published=published), writer.write()]
    await expect(client, positions, [])
    assert (node.jumps, node.feed.rollbacks, writer.recorded_rollbacks()) == ([], 0, [])
    client.disconnect()


async def test_a_number_without_an_entry_is_no_gap_for_clients_that_return(redis_url: str, writer: LogWriter) -> None:
    """Their server has read the end of the log only, or nothing of it."""
    positions = [writer.write(), writer.write(), write_after_hole(writer), writer.write(), write_after_hole(writer)]
    node = Node(redis_url)
    await node.open()
    try:
        for at, position in enumerate([LOG_START, *positions[:-1]]):
            client = await client_of(node, position.cursor)
            await expect(client, positions[at:], [])
            client.disconnect()
    finally:
        await node.close()


async def test_the_number_before_the_first_entry_is_no_gap(node: Node, writer: LogWriter) -> None:
    """So began the logs whose first entry was that of an ingested protected user."""
    live = await client_of(node, LOG_START.cursor)
    positions = [write_after_hole(writer), writer.write()]
    late = await client_of(node, LOG_START.cursor)
    for client in (live, late):
        await expect(client, positions, [])
        client.disconnect()
    for since in (LOG_START.cursor, "-15m"):
        start = await resolve_start(since, node.store.log, now_ms=node.store.log.now_ms, param="since")
        assert start.known_gap is None
    assert node.jumps == []


async def test_what_was_trimmed_is_told_where_numbers_are_missing_too(without_canary: Node, writer: LogWriter) -> None:
    """The entry before is gone, so nobody can tell what had those numbers. The gap counts them all."""
    first = writer.write()
    away = await client_of(without_canary, first.cursor)
    positions = [first, *(write_after_hole(writer, published=False) for _ in range(6))]
    writer.client.xtrim(keys.LOG, maxlen=2, approximate=False)
    positions.append(writer.write())
    await expect(away, positions[-3:], ["trimmed"])
    away.disconnect()
    assert [(reason, missed) for _, reason, missed in without_canary.jumps] == [("trimmed", positions[-3].n - 2)]
    start = await resolve_start(
        first.cursor, without_canary.store.log, now_ms=without_canary.store.log.now_ms, param="since"
    )
    assert start.known_gap is not None
    assert start.known_gap.missed_count == positions[-3].n - 2


@pytest.mark.parametrize("is_lost", [False, True], ids=["lacks an entry", "has a lost entry"])
async def test_a_page_of_a_replica_that_the_primary_does_not_confirm_is_read_again(
    without_canary: Node, writer: LogWriter, monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    """It shows a number too high, as a hole does. But the primary has another entry after the head, or none."""
    log = without_canary.store.log
    positions = [writer.write()]
    await without_canary.expect_received(positions)
    read, pages = log.read, list[int]()

    async def read_differently(after: Any, count: int, up_to: Any = None, *, from_primary: bool = False) -> Any:
        entries = await read(after, count, up_to, from_primary=from_primary)
        pages.append(len(entries))
        if is_lost:
            return [] if len(pages) == 2 else entries
        return entries[1:] if len(pages) == 1 else entries

    monkeypatch.setattr(log, "read", read_differently)
    positions.append(write_after_hole(writer, published=False) if is_lost else writer.write(published=False))
    positions.append(writer.write())
    await without_canary.expect_received(positions[is_lost:])  # the ring forgets what was before a hole
    assert (without_canary.jumps, without_canary.feed.reconnects, len(pages) > 2) == ([], 0, True)
