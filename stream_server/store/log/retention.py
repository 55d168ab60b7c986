"""Retention of the log: trim its front by age and by size in bytes.

Trimming removes entries only at the front, in slices of some milliseconds, and never the newest entry. Redis removes
whole nodes of its stream (100 entries or 4 KiB), so the log keeps up to one node more than the limits allow.
"""

from typing import NamedTuple

from stream_server.errors import InternalError, Unavailable
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts
from stream_server.store.write_guard import RedisStateReader

TRIM_SLICE_ENTRIES = 10_000
"""Most entries removed by one script call. This takes about one millisecond of Redis' time."""

STREAM_NODE_ENTRIES = 100
"""Most entries of one stream node by Redis' default. It is the first step of trimming by size. Each step doubles."""

MAX_SIZE_STEPS = 40
"""Most steps of trimming by size in one run. The next run removes the rest."""

MEMORY_SHARE = 2
"""The log has at most one of this many parts of Redis' memory, so that events alone cannot fill it."""

MEMORY_SAMPLES = 100_000
"""Stream nodes that Redis samples to measure the log, oldest first. All nodes of 400 MB take 5 to 10 ms."""

SIZE_CACHE_MS = 5000
"""Time in milliseconds for which all processes reuse one measurement of the log's size."""


class RetentionLimits(NamedTuple):
    """Maximum age of a log entry in seconds, and maximum size of the log in bytes. 0 means no limit."""

    max_seconds: float
    max_bytes: int


def bound_log(max_bytes: int, memory: int) -> int:
    """Return most bytes of the log: ``max_bytes``, or the log's share of Redis' ``memory`` if that is less.

    0 stands for no limit, and for an unknown memory.
    """
    share = memory // MEMORY_SHARE
    return min(max_bytes, share) if max_bytes and share else max_bytes or share


class LogSize(NamedTuple):
    """The size of the log after a trim.

    ``bytes`` may be up to 5 seconds old. ``age_seconds`` is the age of the first entry, ``trimmed`` the number
    of entries that the trim removed.
    """

    entries: int = 0
    bytes: int = 0
    age_seconds: float = 0.0
    trimmed: int = 0


class Retention:
    """Trims one log: removes entries from its front that are too old, or that make the log too large."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts
        self._state = RedisStateReader(redis)

    async def trim(self, limits: RetentionLimits) -> LogSize:
        """Remove the oldest entries beyond ``limits``; return the log's size. Several processes may call it at once."""
        size = trimmed = await self._trim_slice(limits.max_seconds, 0)
        while trimmed.trimmed:
            trimmed = await self._trim_slice(limits.max_seconds, 0)
            size = trimmed._replace(trimmed=size.trimmed + trimmed.trimmed)
        (cached_bytes,) = await self._redis.execute(("GET", keys.key_for("weight")))
        if cached_bytes is not None:
            return size._replace(bytes=int(cached_bytes))
        max_bytes = await self._choose_max_bytes(limits.max_bytes)
        size = await self._trim_to_bytes(max_bytes, size._replace(bytes=await self._measure_bytes()))
        await self._cache_bytes(size.bytes)
        return size

    async def _choose_max_bytes(self, max_bytes: int) -> int:
        """Return ``max_bytes``, or the log's share of Redis' memory if that is less."""
        try:
            memory = (await self._state.read()).limit_bytes
        except InternalError:  # a Redis that forbids INFO
            return max_bytes
        return bound_log(max_bytes, memory)

    async def _trim_to_bytes(self, max_bytes: int, size: LogSize) -> LogSize:
        """Trim until the log has at most ``max_bytes``. Measure it after each step, because entries differ in size."""
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
        max_ms = max(1, round(max_seconds * 1000)) if max_seconds else 0
        limits = (max_ms, max_entries, TRIM_SLICE_ENTRIES)
        trimmed, entries, age_ms = await self._scripts.call("log_trim", keys.LOG, *limits)
        return LogSize(entries, age_seconds=max(0, age_ms) / 1000, trimmed=trimmed)

    async def _measure_bytes(self) -> int:
        (size_bytes,) = await self._redis.execute(("MEMORY", "USAGE", keys.LOG, "SAMPLES", MEMORY_SAMPLES))
        return int(size_bytes or 0)

    async def _cache_bytes(self, log_bytes: int) -> None:
        """Store the measured size in Redis for all processes. If Redis is full, each process measures it itself."""
        try:
            await self._redis.execute(("SET", keys.key_for("weight"), log_bytes, "PX", SIZE_CACHE_MS))
        except Unavailable:
            return
