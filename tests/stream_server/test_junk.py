"""What is no entry, on the channel and on the log itself: counted, passed over, and the stream goes on."""

from typing import Any

import pytest

from stream_server.events.entry import make_entry
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.position import EPOCH_MS, Position
from stream_server.store import keys
from tests.stream_server.feeding import Node, Pen, now_ms
from tests.stream_server.returning import Returning
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
    "no place": b"1795197600000 1 post public {}",
    "of another time": b"%d-0 1 post public " % (EPOCH_MS - 1) + STATUS % b"a",
    "of no known kind": b"1795197600000-0 1 announcement public " + STATUS % b"a",
    "of no letters": b"1795197600000-0 1 po-st public {}",
    "two lines": b'1795197600000-0 1 post public {"wire":\n{}}',
    "no UTF-8 at all": b"\xff" * 100,
    "1 MiB without a blank": b"x" * MIB,
}
"""What is no message of ours."""


@pytest.mark.parametrize("what", MESSAGES)
async def test_a_message_that_is_none_is_counted_and_passed_over(node: Node, pen: Pen, what: str) -> None:
    """Shown by what comes behind it on the same channel."""
    places = [pen.write()]
    await node.hears(places)
    assert pen.client.publish("events:post", MESSAGES[what]) == 1
    places.append(pen.write())
    await node.hears(places)
    assert (node.feed.malformed, node.feed.reconnects, node.jumps) == (1, 0, [])


@pytest.mark.parametrize("what", BODIES)
async def test_a_body_that_is_none_is_passed_over_on_the_channel_and_on_the_log(
    node: Node, pen: Pen, what: str
) -> None:
    """In the right place, with the right number: nobody is shown it, live or on replay, and what follows arrives."""
    live, later = Returning(), Returning()
    await live.come(node)
    places = [pen.write(), pen.write(BODIES[what]), pen.write()]
    await eventually(lambda: node.hub.head == places[-1], what="the last to be heard")
    assert node.feed.malformed + node.hub.counters.malformed >= 2  # as a message, and as a row of the log
    await later.come(node)
    for client in (live, later):
        await client.hears(places[-1])
        assert [n for n, _ in client.kept] == [1, 3]
    assert not node.task.done()


async def test_rows_that_are_no_entries_are_counted_and_passed_over(node: Node, pen: Pen) -> None:
    """Fields of other names, too few of them, numbers that are none: on replay, too."""
    rows: list[dict[Any, Any]] = [
        {"foo": "bar"}, {"n": 1}, {"n": "x", "k": "post", "a": "public", "e": "{}"},
        {"n": 2, "k": "po st", "a": "public", "e": "{}"}, {"n": 2, "k": "post", "a": b"\xff", "e": "{}"},
        {"n": 2, "k": "post", "a": "public", "e": "{\n}"}, {"n": -1, "k": "post", "a": "public", "e": "{}"},
    ]  # fmt: skip
    places, later = [pen.write()], Returning()
    for at, row in enumerate(rows):
        pen.client.xadd(keys.LOG, row, id=f"{places[0].ms}-{places[0].seq + 1 + at}")
    pen.client.hset(keys.META, "seq", places[0].seq + len(rows))
    places.append(pen.write(published=False))
    await node.hears(places)
    assert node.store.log.invalid_rows >= len(rows)
    await later.come(node)
    await later.hears(places[-1])
    assert len(later.kept) == 2
    assert later.gaps == []


async def test_what_weighs_more_than_the_ring_holds_goes_through(node: Node, pen: Pen, *, full: bool) -> None:
    """A message as large as Redis lets through: it arrives, whoever is behind it too, and nothing is kept of it."""
    size = 64 * MIB if full else 2 * MIB
    client = Returning()
    await client.come(node)
    pen.write(STATUS % (b"x" * size))
    last = pen.write()
    await client.hears(last)
    assert [len(text) for _, text in client.kept] == [size, len("text 1")]
    assert node.hub.ring.size_bytes < MIB
    assert node.feed.malformed == 0


async def test_a_flood_of_junk_costs_no_entry(node: Node, pen: Pen) -> None:
    """Between every two entries a hundred messages that are none, of entries long gone among them."""
    places, client = [], Returning()
    await client.come(node)
    for _ in range(20):
        with pen.client.pipeline() as step:
            for number in range(100):
                step.publish("events:post", b"junk" if number % 2 else pen.message(Position(now_ms(), 9, 0), b"{}"))
            step.execute()
        places.append(pen.write())
    await node.hears(places)
    assert node.feed.malformed == 2000
    await client.hears(places[-1])
    assert len(client.kept) == 20


@pytest.mark.parametrize("what", BODIES)
def test_looking_into_what_is_no_body_raises_one_thing(what: str) -> None:
    """No recursion, no decoding error leaves the entry as itself; where a row cannot even be one, it is none."""
    try:
        entry = make_entry(b"1795197600000-0", b"1", b"post", b"public", BODIES[what])
    except ValueError:
        return
    for _ in range(2):
        with pytest.raises(MalformedEntry):
            _ = entry.event
