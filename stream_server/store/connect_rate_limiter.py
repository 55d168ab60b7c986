"""The limit of reconnects: a counter per user and time window in Redis, shared by all server processes."""

import asyncio
from typing import NamedTuple

from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter
from redis.exceptions import RedisError

from stream_server.store.keys import CONNECTS_PREFIX, connects_suffix
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.refusals import unavailable_error

CONNECT_WINDOW_MINUTES = 15


class ConnectAllowance(NamedTuple):
    """Whether a user may open a stream now, and how many more the user may open until ``resets_at`` (Unix seconds)."""

    admitted: bool
    limit: int
    remaining: int
    resets_at: int


class ConnectRateLimiter:
    """Limits how many streams each user opens in windows of 15 minutes. The user's first connect begins a window."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        storage = RedisStorage(
            "async+redis://",
            implementation="redispy",
            key_prefix=CONNECTS_PREFIX,
            connection_pool=redis.pool,  # type: ignore[arg-type]  # documented, but missing from the annotation
        )
        self._limiter = FixedWindowRateLimiter(storage)

    async def admit(self, uid: str, max_connects: int) -> ConnectAllowance:
        """Count an attempt to open a stream. Admit up to ``max_connects`` in 15 minutes. May raise `Unavailable`."""
        limit = _ConnectLimit(max_connects, CONNECT_WINDOW_MINUTES)
        try:
            async with asyncio.timeout(self._redis.timeout_seconds):
                admitted = await self._limiter.hit(limit, uid)
                window = await self._limiter.get_window_stats(limit, uid)
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable_error() from error
        return ConnectAllowance(admitted, max_connects, window.remaining, int(window.reset_time))


class _ConnectLimit(RateLimitItemPerMinute):
    """A limit for the library `limits`. Its Redis key has only the user id, so counts survive a change of the limit."""

    def key_for(self, *identifiers: bytes | str | float) -> str:
        return connects_suffix(str(identifiers[0]))
