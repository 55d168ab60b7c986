"""The counters behind the rate limits: one number per limit and subject in Redis, shared by all server processes."""

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from redis.exceptions import RedisError

from stream_server.store.keys import RATES_PREFIX, rate_suffix
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.own_task import enter_task
from stream_server.store.redis.refusals import unavailable_error

if TYPE_CHECKING:
    from limits.aio.storage import RedisStorage


class RateCount(NamedTuple):
    """The number that a counter has reached, and the Unix time at which its window ends."""

    value: int
    ends_at: float


class RateCounters:
    """Counts in windows of fixed length. The first amount that is added to a counter begins its window."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        self._storage: RedisStorage | None = None

    def prepare(self) -> "RedisStorage":
        """Load the library that counts, which takes a tenth of a second. Call it before the first use of a counter."""
        if self._storage is None:
            from limits.aio.storage import RedisStorage  # noqa: PLC0415 - only servers with limits need it

            self._storage = RedisStorage(
                "async+redis://",
                implementation="redispy",
                key_prefix=RATES_PREFIX,
                connection_pool=self._redis.pool,  # type: ignore[arg-type]  # documented, but not in the annotation
            )
        return self._storage

    async def add(self, limit_name: str, subject: str, amount: int, window_seconds: int) -> RateCount:
        """Add ``amount`` to the counter of a limit and a subject, such as a user; return what the counter has reached.

        Raises `Unavailable` if Redis does not answer.
        """
        await enter_task()
        key, storage = rate_suffix(limit_name, subject), self.prepare()
        try:
            async with asyncio.timeout(self._redis.timeout_seconds):
                value = await storage.incr(key, window_seconds, amount)
                if value == amount:
                    return RateCount(value, time.time() + window_seconds)
                return RateCount(value, await storage.get_expiry(key))
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable_error() from error
