"""The counters behind the rate limits: one number per limit and subject in Redis, shared by all server processes."""

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from stream_server.store.keys import RATES_PREFIX, rate_suffix
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis

if TYPE_CHECKING:
    from limits.aio.storage import RedisStorage


class RateCount(NamedTuple):
    """The number that a counter has reached, and the Unix time at which its window ends."""

    value: int
    ends_at: float


class RateCounters:
    """Counts in windows of fixed length. The first amount that is added to a counter begins its window."""

    def __init__(self, redis: DerivedRedis) -> None:
        self._redis = redis
        self._storages = WeakKeyDictionary[RedisClient, "RedisStorage"]()

    def prepare(self) -> "type[RedisStorage]":
        """Load the library that counts, which takes a tenth of a second. Call it before the first use of a counter."""
        from limits.aio.storage import RedisStorage  # noqa: PLC0415 - only servers with limits need it

        return RedisStorage

    async def add(self, limit_name: str, subject: str, amount: int, window_seconds: int) -> RateCount:
        """Add ``amount`` to the counter of a limit and a subject, such as a user; return what the counter has reached.

        Raises `Unavailable` if Redis does not answer.
        """
        suffix = rate_suffix(limit_name, subject)

        async def add_on(server: RedisClient) -> RateCount:
            storage = self._storage_of(server)
            async with asyncio.timeout(server.timeout_seconds):
                value = await storage.incr(suffix, window_seconds, amount)
                if value == amount:
                    return RateCount(value, time.time() + window_seconds)
                return RateCount(value, await storage.get_expiry(suffix))

        return await self._redis.use_server_of(f"{RATES_PREFIX}:{suffix}", add_on)

    def _storage_of(self, server: RedisClient) -> "RedisStorage":
        """Return the library's object for one server. It uses the connections of the client and lives as long."""
        storage = self._storages.get(server)
        if storage is None:
            storage = self._storages[server] = self.prepare()(
                "async+redis://",
                implementation="redispy",
                key_prefix=RATES_PREFIX,
                connection_pool=server.pool,  # type: ignore[arg-type]  # documented, but not in the annotation
            )
        return storage
