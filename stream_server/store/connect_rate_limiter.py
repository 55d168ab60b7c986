"""How often somebody connects: a count a user and a window of time, kept in Redis, where all workers count together."""

import asyncio
from typing import NamedTuple

from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter
from redis.exceptions import RedisError

from stream_server.store.keys import CONNECTS_PREFIX, connects_suffix
from stream_server.store.redis.client import RedisClient, unavailable_error

CONNECT_WINDOW_MINUTES = 15


class ConnectAllowance(NamedTuple):
    """What is left of a window: of ``limit`` connects so many are ``remaining`` until ``resets_at``, in seconds since 1970."""

    admitted: bool
    limit: int
    remaining: int
    resets_at: int


class ConnectRateLimiter:
    """Counts the connects of each user; a window begins with its first one."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        storage = RedisStorage(
            "async+redis://",
            implementation="redispy",
            key_prefix=CONNECTS_PREFIX,
            connection_pool=redis.pool,  # type: ignore[arg-type]  # documented; only its annotation forgot it
        )
        self._limiter = FixedWindowRateLimiter(storage)

    async def admit(self, uid: str, max_connects: int) -> ConnectAllowance:
        """Count one connect of a user, who may have ``max_connects`` in a window; raises Unavailable while Redis is away."""
        limit = _ConnectLimit(max_connects, CONNECT_WINDOW_MINUTES)
        try:
            async with asyncio.timeout(self._redis.timeout_seconds):
                admitted = await self._limiter.hit(limit, uid)
                window = await self._limiter.get_window_stats(limit, uid)
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable_error() from error
        return ConnectAllowance(admitted, max_connects, window.remaining, int(window.reset_time))


class _ConnectLimit(RateLimitItemPerMinute):
    """A limit whose counts have keys of ours: a changed limit goes on with the counts of the old one."""

    def key_for(self, *identifiers: bytes | str | float) -> str:
        return connects_suffix(str(identifiers[0]))
