"""The samples of the last hour of each server, by which its operator sees what happened before the page was opened."""

from collections.abc import Mapping

from stream_server.store import keys
from stream_server.store.redis.derived import DerivedRedis

KEPT_SECONDS = 3600
"""How long samples are kept, in seconds."""


class OperationSamples:
    """Stores and reads samples. What a sample says is known to those who make it."""

    def __init__(self, derived: DerivedRedis) -> None:
        self._derived = derived

    async def add(self, server: str, samples: Mapping[bytes, int]) -> None:
        """Store samples of the server with this name and their times, in seconds since 1970, in one round trip.

        Forget those that are an hour older than the newest of these. Redis forgets all samples of a server that stores
        none for two hours. Raises ApiError if Redis does not answer or refuses them; they may be stored again.
        """
        key = keys.operation_samples(server)
        added = [word for sample, at in samples.items() for word in (at, sample)]
        await self._derived.execute(
            ("ZADD", key, *added),
            ("ZREMRANGEBYSCORE", key, "-inf", max(samples.values()) - KEPT_SECONDS),
            ("EXPIRE", key, 2 * KEPT_SECONDS),
        )

    async def read(self, server: str, since: int, until: int) -> list[bytes]:
        """Return the samples of a server from between two times in seconds since 1970, the oldest first.

        Raises ApiError if Redis does not answer.
        """
        found: list[bytes]
        (found,) = await self._derived.execute(("ZRANGEBYSCORE", keys.operation_samples(server), since, until))
        return found
