"""The memory of Redis: how much it uses, and how much it may use."""

from typing import NamedTuple

from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replies import parse_info


class MemoryUse(NamedTuple):
    """Bytes that Redis uses, and bytes that it may use: its ``maxmemory``, else the memory of its machine.

    ``limit_bytes`` is 0 if Redis tells neither.
    """

    used_bytes: int
    limit_bytes: int


class RedisMemory:
    """Asks Redis for its memory."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def measure(self) -> MemoryUse:
        """Return the memory of the primary. Raises `ApiError` if Redis does not answer, or forbids INFO."""
        (info,) = await self._redis.execute(("INFO", "memory"))
        found = parse_info(info)
        limit = int(found.get("maxmemory", 0)) or int(found.get("total_system_memory", 0))
        return MemoryUse(int(found.get("used_memory", 0)), limit)
