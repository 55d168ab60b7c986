"""How far back the log reaches: by age and by size, besides the number of entries, which each write keeps to itself.

Only the front is ever taken off, in slices of some milliseconds, and never the newest entry. Redis drops whole nodes of
its own (100 entries, or 4 KiB), so the log keeps up to a node more than it was asked to.
"""

from typing import NamedTuple

from stream_server.errors import Unavailable
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts

TRIM_SLICE_ENTRIES = 10_000
"""Entries taken at once: about a millisecond of Redis' time."""

STREAM_NODE_ENTRIES = 100
"""Entries of a node, at most, as Redis is set by default: the first step by weight, and each other is twice as long."""

MAX_SIZE_STEPS = 40
"""Steps by weight in one turn; what is still too much then has to wait for the next."""

MEMORY_SAMPLES = 100_000
"""Nodes that Redis looks at to weigh the log, the oldest: all of one of 400 MB; 5 to 10 ms. In a larger one these speak
for all, which is the trade for not holding Redis longer."""

SIZE_CACHE_MS = 5000
"""So long a weighing holds, for all processes together."""


class RetentionLimits(NamedTuple):
    """What the log may keep; 0 is no bound."""

    max_seconds: float
    max_bytes: int


class LogSize(NamedTuple):
    """How much log there is: its first entry was written ``age_seconds`` ago by Redis' clock.

    ``bytes`` is what Redis said when it was weighed last; ``trimmed`` are the entries that this turn took off.
    """

    entries: int = 0
    bytes: int = 0
    age_seconds: float = 0.0
    trimmed: int = 0


class Retention:
    """The far end of one store's log."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def trim(self, limits: RetentionLimits) -> LogSize:
        """Take off what is out of ``limits``; any number of processes may do it at once. Raises Unavailable."""
        found = taken = await self._trim_slice(limits.max_seconds, 0)
        while taken.trimmed:
            taken = await self._trim_slice(limits.max_seconds, 0)
            found = taken._replace(trimmed=found.trimmed + taken.trimmed)
        known = await self._read_cached_bytes()
        if known is not None:
            return found._replace(bytes=known)
        found = await self._trim_to_bytes(limits.max_bytes, found._replace(bytes=await self._measure_bytes()))
        await self._cache_bytes(found.bytes)
        return found

    async def _trim_to_bytes(self, max_bytes: int, size: LogSize) -> LogSize:
        """Take off what is too much by weight, weighed anew after each step: what goes may be heavier than the rest."""
        step = STREAM_NODE_ENTRIES
        for _ in range(MAX_SIZE_STEPS if max_bytes else 0):
            if size.bytes <= max_bytes:
                break
            fitting = max(1, size.entries * max_bytes // size.bytes)
            taken = await self._trim_slice(0, max(fitting, size.entries - step))
            if taken.trimmed:
                size = taken._replace(trimmed=size.trimmed + taken.trimmed, bytes=await self._measure_bytes())
            elif step >= size.entries - fitting:
                break  # the rest shares a node with what stays
            step *= 2
        return size

    async def _trim_slice(self, max_seconds: float, max_entries: int) -> LogSize:
        """One slice of what is too old, and of what is more than ``max_entries`` entries."""
        max_ms = max(1, round(max_seconds * 1000)) if max_seconds else 0
        taken, entries, age_ms = await self._scripts.call("log_trim", keys.LOG, max_ms, max_entries, TRIM_SLICE_ENTRIES)
        return LogSize(entries, age_seconds=max(0, age_ms) / 1000, trimmed=taken)

    async def _measure_bytes(self) -> int:
        (weight,) = await self._redis.execute(("MEMORY", "USAGE", keys.LOG, "SAMPLES", MEMORY_SAMPLES))
        return int(weight or 0)

    async def _read_cached_bytes(self) -> int | None:
        """What somebody has weighed a moment ago."""
        (known,) = await self._redis.execute(("GET", keys.key_for("weight")))
        return None if known is None else int(known)

    async def _cache_bytes(self, log_bytes: int) -> None:
        """A full Redis takes no note of it: then each process weighs for itself, and memory gets free all the same."""
        try:
            await self._redis.execute(("SET", keys.key_for("weight"), log_bytes, "PX", SIZE_CACHE_MS))
        except Unavailable:
            return
