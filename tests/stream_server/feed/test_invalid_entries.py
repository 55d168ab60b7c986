"""Messages and log rows that are not entries are counted and skipped, and the stream continues."""

from typing import Any

import pytest

from stream_server.events.content import MalformedEntry
from stream_server.events.entry import make_entry
from stream_server.events.position import EPOCH_MS, Position
from stream_server.store import keys
from tests.stream_server.feed.node import LogWriter, Node, now_ms
from tests.stream_server.feed.returning_client import ReturningClient
from tests.waiting import eventually

MIB = 1 << 20
DEEP = 100_000

STATUS = b'{"wire":{"status":{"id":"1","uid":"7","message":"%b"}}}'

BODIES = {
    "no JSON": b"{",
    "another JSON": b"[1,2,3]",
    "nothing in it": b'{"wire":{}}',
    "no status": b'{"wire":{"status":null}}',
    "deeply nested": b'{"wire":{"status":' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "deeply nested where nobody looks": b'{"wire":{"x":' + b'{"x":' * DEEP + b"1" + b"}" * DEEP + b"}}",
    "no UTF-8 in its text": STATUS % b"\xff\xfe",
    "no UTF-8 where nobody looks": b'{"wire":{"status":{"id":"1","uid":"7","message":"a","meta":{"x":"\xc3("}}}}',
    "a lone surrogate": STATUS % b"\xed\xa0\x80",
    "an id that is none": b'{"wire":{"status":{"id":"-1","uid":"7","message":"a"}}}',
    "of 1 MiB": b'{"wire":' + b"x" * MIB + b"}",
}
"""What is no event, whoever sent it."""

MESSAGES = {
    "empty": b"",
    "one word": b"hello",
    "another shape": b"v2 1795197600000-0 1 post public {}",
    "more words": b"1795197600000-0 1 post public",
    "no number": b"1795197600000-0 x post public {}",
    "no position": b"1795197600000 1 post public {}",
    "of another time": b"%d-0 1 post public " % (EPOCH_MS - 1) + STATUS % b"a",
    "of no known kind": b"1795197600000-0 1 announcement public " + STATUS % b"a",
    "of no letters": b"1795197600000-0 1 po-st public {}",
    "two lines": b'1795197600000-0 1 post public {"wire":\n{}}',
    "no UTF-8 at all": b"\xff" * 100,
    "1 MiB without a blank": b"x" * MIB,
}
"""What is no message of ours."""


@pytest.mark.parametrize("what", MESSAGES)
async def test_an_invalid_message_is_counted_and_skipped(node: Node, writer: LogWriter, what: str) -> None:
    positions = [writer.write()]
    await node.expect_received(positions)
    assert writer.client.publish("events:post", MESSAGES[what]) == 1
    positions.append(writer.write())
    await node.expect_received(positions)
    assert (node.feed.malformed, node.feed.reconnects, node.jumps) == (1, 0, [])


@pytest.mark.parametrize("what", BODIES)
async def test_an_invalid_body_is_skipped_in_a_message_and_on_the_log(node: Node, writer: LogWriter, what: str) -> None:
    live, later = ReturningClient(), ReturningClient()
    await live.connect(node)
    positions = [writer.write(), writer.write(BODIES[what]), writer.write()]
    await eventually(lambda: node.hub.head == positions[-1], what="the last to arrive")
    assert node.feed.malformed + node.hub.counters.malformed >= 2  # as a message, and as a row of the log
    await later.connect(node)
    for client in (live, later):
        await client.expect_cursor(positions[-1])
        assert [n for n, _ in client.kept] == [1, 3]
    assert not node.task.done()


async def test_invalid_rows_of_the_log_are_counted_and_skipped(node: Node, writer: LogWriter) -> None:
    rows: list[dict[Any, Any]] = [
        {"foo": "bar"}, {"n": 1}, {"n": "x", "k": "post", "a": "public", "e": "{}"},
        {"n": 2, "k": "po st", "a": "public", "e": "{}"}, {"n": 2, "k": "post", "a": b"\xff", "e": "{}"},
        {"n": 2, "k": "post", "a": "public", "e": "{\n}"}, {"n": -1, "k": "post", "a": "public", "e": "{}"},
    ]  # fmt: skip
    positions, later = [writer.write()], ReturningClient()
    for at, row in enumerate(rows):
        writer.client.xadd(keys.LOG, row, id=f"{positions[0].ms}-{positions[0].seq + 1 + at}")
    writer.client.hset(keys.META, "seq", positions[0].seq + len(rows))
    positions.append(writer.write(published=False))
    await node.expect_received(positions)
    before = node.store.log.invalid_rows
    assert [entry.position for entry in await node.store.log.read(positions[0], 2)] == positions[1:]
    assert node.store.log.invalid_rows == before + len(rows)
    await later.connect(node)
    await later.expect_cursor(positions[-1])
    assert len(later.kept) == 2
    assert later.gaps == []


async def test_an_entry_larger_than_the_ring_is_delivered(node: Node, writer: LogWriter, *, full: bool) -> None:
    size = 64 * MIB if full else 2 * MIB
    client = ReturningClient()
    await client.connect(node)
    writer.write(STATUS % (b"x" * size))
    last = writer.write()
    await client.expect_cursor(last)
    assert [len(text) for _, text in client.kept] == [size, len("text 1")]
    assert node.hub.ring.size_bytes < MIB
    assert node.feed.malformed == 0


async def test_a_flood_of_invalid_messages_costs_no_entry(node: Node, writer: LogWriter) -> None:
    positions, client = [], ReturningClient()
    await client.connect(node)
    for _ in range(20):
        with writer.client.pipeline() as step:
            for number in range(100):
                step.publish("events:post", b"junk" if number % 2 else writer.message(Position(now_ms(), 9, 0), b"{}"))
            step.execute()
        positions.append(writer.write())
    await node.expect_received(positions)
    assert node.feed.malformed == 2000
    await client.expect_cursor(positions[-1])
    assert len(client.kept) == 20


@pytest.mark.parametrize("what", BODIES)
def test_an_invalid_body_raises_only_malformed_entry(what: str) -> None:
    try:
        entry = make_entry(b"1795197600000-0", b"1", b"post", b"public", BODIES[what])
    except ValueError:
        return
    for _ in range(2):
        with pytest.raises(MalformedEntry):
            _ = entry.event
