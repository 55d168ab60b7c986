"""Tickets: what a page shows once in the place of its token. Only their SHA-256 is kept."""

from stream_server.store import keys
from stream_server.store.redis.client import RedisClient


class Tickets:
    """The tickets of one store."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def store(self, digest: str, claims: bytes, ttl_seconds: int) -> None:
        """Let the ticket with this SHA-256 stand for ``claims``, once, within ``ttl_seconds``.

        Raises OutcomeUnknown when the answer was lost; a ticket that nobody knows of harms nobody.
        """
        await self._redis.execute_write(("SET", keys.key_for("ticket", digest), claims, "EX", ttl_seconds))

    async def redeem(self, digest: str) -> bytes | None:
        """The claims of an unused ticket, which is used by this; None if there is none.

        Raises OutcomeUnknown when the answer was lost, and then it may be used up: another has to be asked for.
        """
        (claims,) = await self._redis.execute_write(("GETDEL", keys.key_for("ticket", digest)))
        return None if claims is None else bytes(claims)
