"""Retention of the log: trim its front by age and by size in bytes. Each write bounds the number of entries itself.

Trimming removes entries only at the front, in slices of some milliseconds, and never the newest entry. Redis removes
whole nodes of its stream (100 entries or 4 KiB), so the log keeps up to one node more than the limits allow.
"""

from typing import NamedTuple

from stream_server.errors import Unavailable
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts

TRIM_SLICE_ENTRIES = 10_000
"""Most entries removed by one script call. This takes about one millisecond of Redis' time."""

STREAM_NODE_ENTRIES = 100
"""Most entries of one stream node by Redis' default. It is the first step of trimming by size. Each step doubles."""

MAX_SIZE_STEPS = 40
"""Most steps of trimming by size in one run. The next run removes the rest."""

MEMORY_SAMPLES = 100_000
"""Number of stream nodes that Redis samples to measure the log, oldest first. This takes 5 to 10 ms.

It covers all nodes of a log of 400 MB. In a larger log the samples stand for all nodes, so that Redis is not blocked
for longer.
"""

SIZE_CACHE_MS = 5000
"""Time in milliseconds for which all processes reuse one measurement of the log's size."""


class RetentionLimits(NamedTuple):
    """Limits of the log.

    Attributes:
        max_seconds: Maximum age of an entry in seconds, or 0 for no limit.
        max_bytes: Maximum size of the log in bytes, or 0 for no limit.
    """

    max_seconds: float
    max_bytes: int


class LogSize(NamedTuple):
    """The size of the log.

    Attributes:
        entries: Number of entries.
        bytes: Size in bytes at the last measurement.
        age_seconds: Age of the first entry in seconds, by Redis' clock.
        trimmed: Number of entries that this run removed.
    """

    entries: int = 0
    bytes: int = 0
    age_seconds: float = 0.0
    trimmed: int = 0


class Retention:
    """Trims the front of one log."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def trim(self, limits: RetentionLimits) -> LogSize:
        """Remove the entries beyond ``limits``. Several processes may do this at once. Raises `Unavailable`."""
        size = trimmed = await self._trim_slice(limits.max_seconds, 0)
        while trimmed.trimmed:
            trimmed = await self._trim_slice(limits.max_seconds, 0)
            size = trimmed._replace(trimmed=size.trimmed + trimmed.trimmed)
        cached_bytes = await self._read_cached_bytes()
        if cached_bytes is not None:
            return size._replace(bytes=cached_bytes)
        size = await self._trim_to_bytes(limits.max_bytes, size._replace(bytes=await self._measure_bytes()))
        await self._cache_bytes(size.bytes)
        return size

    async def _trim_to_bytes(self, max_bytes: int, size: LogSize) -> LogSize:
        """Trim until the log has at most ``max_bytes``.

        Measure the log again after each step, because the removed entries may be larger than the others.
        """
        step = STREAM_NODE_ENTRIES
        for _ in range(MAX_SIZE_STEPS if max_bytes else 0):
            if size.bytes <= max_bytes:
                break
            fitting = max(1, size.entries * max_bytes // size.bytes)
            trimmed = await self._trim_slice(0, max(fitting, size.entries - step))
            if trimmed.trimmed:
                size = trimmed._replace(trimmed=size.trimmed + trimmed.trimmed, bytes=await self._measure_bytes())
            elif step >= size.entries - fitting:
                break  # the remaining surplus is in the same node as entries that stay
            step *= 2
        return size

    async def _trim_slice(self, max_seconds: float, max_entries: int) -> LogSize:
        """Remove one slice of the entries that are too old or exceed ``max_entries``. 0 means no limit."""
        max_ms = max(1, round(max_seconds * 1000)) if max_seconds else 0
        trimmed, entries, age_ms = await self._scripts.call(
            "log_trim", keys.LOG, max_ms, max_entries, TRIM_SLICE_ENTRIES
        )
        return LogSize(entries, age_seconds=max(0, age_ms) / 1000, trimmed=trimmed)

    async def _measure_bytes(self) -> int:
        """Return the size of the log in bytes, estimated by Redis."""
        (size_bytes,) = await self._redis.execute(("MEMORY", "USAGE", keys.LOG, "SAMPLES", MEMORY_SAMPLES))
        return int(size_bytes or 0)

    async def _read_cached_bytes(self) -> int | None:
        """Return the size that any process measured within the last `SIZE_CACHE_MS`, or None."""
        (cached,) = await self._redis.execute(("GET", keys.key_for("weight")))
        return None if cached is None else int(cached)

    async def _cache_bytes(self, log_bytes: int) -> None:
        """Share a measured size with all processes. A full Redis refuses this; then each process measures."""
        try:
            await self._redis.execute(("SET", keys.key_for("weight"), log_bytes, "PX", SIZE_CACHE_MS))
        except Unavailable:
            return
