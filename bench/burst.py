"""Publishes many posts at the same moment, so that one read from Redis brings several.

No HTTP server can do this at a chosen rate. So the posts are appended to the log and published as the server's scripts
do it, in one transaction a burst. They are copies of one real post with ids, times and signatures of their own.
"""

import asyncio
import re
import time
from typing import Any

from redis.asyncio import Redis

from bench.poster import with_hands
from bench.site import Site
from stream_server.events.bus_signature import MAC_PREFIX, BusSignature
from stream_server.events.position import Position
from stream_server.security.signing_keys import to_bus_key
from stream_server.store import keys

CHANNEL = "events:post"

FILLED_AT_ONCE = 500
"""Posts of one transaction when a log is filled."""

TIME = re.compile(rb'"t":\d+')


class Bursts:
    """Bursts of copies of one post."""

    def __init__(self, redis: "Redis", key: bytes, example: bytes) -> None:
        self._redis = redis
        self._signature = BusSignature(key)
        self._id, _, self._rest = example.split(b" ", 2)
        ms, seq = map(int, self._id.split(b"-"))
        self._status = Position(ms, seq, 0).status_number

    @classmethod
    async def of(cls, site: Site) -> "Bursts":
        """Create one real post and learn its form."""
        redis = Redis(unix_socket_path=site.redis_socket)
        key = to_bus_key(site.bus_secret)
        async with redis.pubsub(ignore_subscribe_messages=True) as heard:
            await heard.subscribe(CHANNEL)
            await with_hands(site.address, 1, lambda connection: connection.post(site.authors[0], 1))
            message = None
            while message is None:
                message = await heard.get_message(timeout=5)
        plain = BusSignature(key).open(message["data"])
        assert plain is not None, "the writer signs with another key"
        return cls(redis, key, plain)

    async def run(self, size: int, per_second: float, done: asyncio.Event) -> None:
        """Publish ``size`` posts at a time, ``per_second`` times a second, until ``done`` is set."""
        start, number = time.monotonic(), 0
        while not done.is_set():
            await asyncio.sleep(max(0.0, start + number / per_second - time.monotonic()))
            await self._burst(size)
            number += 1
        await self._redis.aclose()

    async def fill(self, count: int) -> None:
        """Publish ``count`` posts as fast as Redis takes them."""
        for start in range(0, count, FILLED_AT_ONCE):
            await self._burst(min(FILLED_AT_ONCE, count - start))
        await self._redis.aclose()

    async def _burst(self, size: int) -> None:
        ms, last = (int(value or 0) for value in await self._redis.hmget(keys.META, "ms", "n"))
        ms = max(ms + 1, int(time.time() * 1000))
        kind, audience, body = self._rest.split(b" ", 2)
        async with self._redis.pipeline(transaction=True) as commands:
            for seq in range(size):
                number, post = last + 1 + seq, self._copy(body, Position(ms, seq, 0))
                entry_id = f"{ms}-{seq}".encode()
                fields: Any = {"n": number, "k": kind, "a": audience, "e": post}
                commands.xadd(keys.LOG, fields, id=entry_id)
                plain = b"%b %d %b %b %b" % (entry_id, number, kind, audience, post)
                commands.publish(CHANNEL, self._signed(plain))
            commands.hset(keys.META, mapping={"ms": ms, "seq": size - 1, "n": last + size})
            await commands.execute()

    def _copy(self, body: bytes, position: Position) -> bytes:
        """Return the body with the id of the position, and with the current time."""
        own = body.replace(str(self._status).encode(), str(position.status_number).encode())
        return TIME.sub(b'"t":%d' % time.monotonic_ns(), own, count=1)

    def _signed(self, plain: bytes) -> bytes:
        return plain[:-1] + MAC_PREFIX + self._signature.sign(plain) + b'"}'
