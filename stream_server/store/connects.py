"""How often somebody connects: a count a user and a window of time, kept in Redis, where all workers count together."""

import asyncio
from typing import NamedTuple

from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter
from redis.exceptions import RedisError

from stream_server.store.keys import CONNECTS, connects
from stream_server.store.link import Link, unavailable

WINDOW_MINUTES = 15


class Allowance(NamedTuple):
    """What is left of a window: of ``most`` connects so many are ``left`` until ``reset``, in seconds since 1970."""

    admitted: bool
    most: int
    left: int
    reset: int


class Connects:
    """Counts the connects of each user; a window begins with its first one."""

    def __init__(self, link: Link) -> None:
        self._link = link
        storage = RedisStorage(
            "async+redis://",
            implementation="redispy",
            key_prefix=CONNECTS,
            connection_pool=link.pool,  # type: ignore[arg-type]  # documented; only its annotation forgot it
        )
        self._limiter = FixedWindowRateLimiter(storage)

    async def admit(self, uid: str, most: int) -> Allowance:
        """Count one connect of a user, who may have ``most`` in a window; raises Unavailable while Redis is away."""
        limit = _Limit(most, WINDOW_MINUTES)
        try:
            async with asyncio.timeout(self._link.timeout_seconds):
                admitted = await self._limiter.hit(limit, uid)
                window = await self._limiter.get_window_stats(limit, uid)
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable() from error
        return Allowance(admitted, most, window.remaining, int(window.reset_time))


class _Limit(RateLimitItemPerMinute):
    """A limit whose counts have keys of ours: a changed limit goes on with the counts of the old one."""

    def key_for(self, *identifiers: bytes | str | float) -> str:
        return connects(str(identifiers[0]))
