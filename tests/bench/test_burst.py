"""The posts that the benchmark publishes in bursts are the same to the server as real posts."""

import asyncio
from typing import Any

from redis.asyncio import Redis

from bench.burst import Bursts
from stream_server.events.bus_signature import BusSignature
from stream_server.events.entry import Entry, parse_published
from stream_server.events.position import Position
from stream_server.store import keys
from tests.waiting import PATIENCE

KEY = b"k" * 32
FIRST = Position(1795507484287, 0, 1)
EXAMPLE = (
    b'1795507484287-0 1 post public {"wire":{"status":{"id":"%d","uid":"1","login":"a","message":"hi",'
    b'"posted":"2026-11-24T08:04:44.287Z","meta":{"t":5}}}}' % FIRST.status_number
)


async def test_a_burst_is_on_the_log_and_published_with_valid_signatures(redis_url: str) -> None:
    """Its entries continue the log without a gap, and each has an id of its own."""
    redis = Redis.from_url(redis_url)
    reading = Redis.from_url(redis_url)
    await redis.hset(keys.META, mapping={"ms": FIRST.ms, "seq": FIRST.seq, "n": FIRST.n})
    done = asyncio.Event()
    async with reading.pubsub(ignore_subscribe_messages=True) as heard:
        await heard.subscribe("events:post")
        posting = asyncio.create_task(Bursts(redis, KEY, EXAMPLE).run(3, 1000, done))
        entries: list[Entry] = []
        async with asyncio.timeout(PATIENCE):
            while len(entries) < 6:
                message = await heard.get_message(timeout=1)
                if message is not None:
                    plain = BusSignature(KEY).open(message["data"])
                    assert plain is not None
                    entries.append(parse_published(plain))
        done.set()
        await posting
    assert [entry.position.n for entry in entries] == [2, 3, 4, 5, 6, 7]
    assert sorted(entry.position for entry in entries) == [entry.position for entry in entries]
    assert all(str(entry.position.status_number).encode() in entry.body for entry in entries)
    logged: Any = await reading.xrange(keys.LOG, count=6)
    await reading.aclose()
    assert [row[1][b"e"] for row in logged] == [entry.body for entry in entries]
