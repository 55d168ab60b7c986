"""The counters behind the rate limits: one number per limit and subject in Redis, shared by all server processes."""

import time
from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.redis.derived import DerivedRedis


class RateCount(NamedTuple):
    """The number that a counter has reached, and the Unix time at which its window ends."""

    value: int
    ends_at: float


class RateCounters:
    """Counts in windows of fixed length. The first amount that is added to a counter begins its window."""

    def __init__(self, redis: DerivedRedis) -> None:
        self._redis = redis

    async def add(self, limit_name: str, subject: str, amount: int, window_seconds: int) -> RateCount:
        """Add ``amount`` to the counter of a limit and a subject, such as a user; return what the counter has reached.

        Raises `Unavailable` if Redis does not answer.
        """
        key = keys.rate_counter(limit_name, subject)
        value, _, left_ms = await self._redis.execute(
            ("INCRBY", key, amount), ("EXPIRE", key, window_seconds, "NX"), ("PTTL", key)
        )
        return RateCount(value, time.time() + left_ms / 1000)
