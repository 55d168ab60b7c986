"""The limit of reconnects: a counter per user and time window in Redis, shared by all server processes."""

import asyncio
from typing import NamedTuple

from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter
from redis.exceptions import RedisError

from stream_server.store.keys import CONNECTS_PREFIX, connects_suffix
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.errors import unavailable_error

CONNECT_WINDOW_MINUTES = 15
"""Length of a window in minutes."""


class ConnectAllowance(NamedTuple):
    """The state of a user's window after a connect.

    Attributes:
        admitted: Whether the connect is allowed.
        limit: Number of connects allowed in a window.
        remaining: Number of connects left in this window.
        resets_at: End of the window in seconds since 1970.
    """

    admitted: bool
    limit: int
    remaining: int
    resets_at: int


class ConnectRateLimiter:
    """Counts the connects of each user. A window begins with the first connect in it."""

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
        """Count one connect of a user who may connect ``max_connects`` times in a window. Raises `Unavailable`."""
        limit = _ConnectLimit(max_connects, CONNECT_WINDOW_MINUTES)
        try:
            async with asyncio.timeout(self._redis.timeout_seconds):
                admitted = await self._limiter.hit(limit, uid)
                window = await self._limiter.get_window_stats(limit, uid)
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable_error() from error
        return ConnectAllowance(admitted, max_connects, window.remaining, int(window.reset_time))


class _ConnectLimit(RateLimitItemPerMinute):
    """A limit whose keys come from our key table. After a change of the limit, the counts continue."""

    def key_for(self, *identifiers: bytes | str | float) -> str:
        """Return the suffix of the counter's key for a user id."""
        return connects_suffix(str(identifiers[0]))
