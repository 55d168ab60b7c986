"""Retention of the log: trim its front by age and by size in bytes.

Trimming removes entries only at the front, in slices of some milliseconds, and never the newest entry. Redis removes
whole nodes of its stream (100 entries or 4 KiB), so the log keeps up to one node more than the limits allow.

The scripts count the bytes of entries as they append them (``store/lua/log.lua``). ``MEMORY USAGE`` would read every
node of the stream for the same number. What Redis needs around the entries is computed (:func:`stream_memory`).
"""

from typing import NamedTuple

from stream_server.errors import InternalError
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import ScriptRunner
from stream_server.store.write_guard import RedisState, RedisStateReader

TRIM_SLICE_ENTRIES = 10_000
"""Most entries removed by one script call. This takes about one millisecond of Redis' time."""


class RetentionLimits(NamedTuple):
    """Maximum age of a log entry in seconds, and maximum size of the log in bytes. 0 means no limit."""

    max_seconds: float
    max_bytes: int


def bound_log(max_bytes: int, memory: int) -> int:
    """Return most bytes of the log: ``max_bytes``, or the log's share of Redis' ``memory`` if that is less.

    0 stands for no limit, and for an unknown memory.
    """
    share = memory // 2  # events alone must not fill Redis
    return min(max_bytes, share) if max_bytes and share else max_bytes or share


def stream_memory(entry_bytes: int, entries: int, allocator: str) -> int:
    """Return the bytes of memory of a Redis stream whose entries have ``entry_bytes`` bytes all together.

    All are taken as equally large, so that a node has as many as fit. ``allocator`` is that of Redis: jemalloc rounds
    the size of a node up by as much as a quarter. The result is mostly within 10 % of what Redis takes.
    """
    if not entries:
        return 0
    mean = max(1.0, entry_bytes / entries)
    head_bytes = 24  # of a node, beside its entries: the header of a listpack, the names of the fields, and counts
    # By its default ``stream-node-max-bytes``, Redis begins another node behind 4,096 bytes.
    entries_per_node = max(1, (4096 - head_bytes) // mean)
    node_bytes = round(head_bytes + mean * entries_per_node)
    if allocator.startswith("jemalloc"):  # it has four sizes between two powers of two
        step = 1 << max(0, (node_bytes - 1).bit_length() - 3)
        node_bytes = -(-node_bytes // step) * step
    key_bytes = 100  # by which the tree of a stream finds a node: key and nodes of the tree, measured with Valkey 9
    return round((node_bytes + key_bytes) * entries / entries_per_node)


TELLING_SHARE = 0.1
"""Share of its bytes from which on the growth of a log tells when it will be full.

Before, it tells nothing: after the first busy minute, all entries would seem to leave within the hour. Nothing leaves
soon: while the log grows as it did, that takes nine times the time in which the first tenth came.
"""


class LogSize(NamedTuple):
    """The size of the log after a trim.

    Attributes:
        entries: Number of its entries.
        bytes: Its memory in Redis.
        age_seconds: Age of the first entry.
        trimmed: Number of entries that the trim removed.
        first_ms: Time of the first entry, in ms since 1970; 0 if the log is empty.
        last_ms: Time of the newest entry.
        kept_seconds: About how old an entry becomes before it leaves the log, if the log goes on to grow as it did.
            None if no limit is set or near, or if the log was not looked at yet.
    """

    entries: int = 0
    bytes: int = 0
    age_seconds: float = 0.0
    trimmed: int = 0
    first_ms: int = 0
    last_ms: int = 0
    kept_seconds: float | None = None


class Retention:
    """Trims one log: removes entries from its front that are too old, or that make the log too large."""

    def __init__(self, redis: RedisClient, scripts: ScriptRunner) -> None:
        self._scripts = scripts
        self._state = RedisStateReader(redis)

    async def trim(self, limits: RetentionLimits) -> LogSize:
        """Remove the oldest entries beyond ``limits``; return the log's size. Several processes may call it at once."""
        try:
            state = await self._state.read()
        except InternalError:  # a Redis that forbids INFO
            state = RedisState()
        max_bytes = bound_log(limits.max_bytes, state.limit_bytes)
        max_ms = max(1, round(limits.max_seconds * 1000)) if limits.max_seconds else 0
        all_trimmed = max_entry_bytes = 0
        while True:
            log = await self._scripts.call(
                "log_trim", keys.LOG, max_age=max_ms, max_size=max_entry_bytes, most=TRIM_SLICE_ENTRIES
            )
            all_trimmed += log["removed"]
            memory = stream_memory(log["bytes"], log["left"], state.allocator)
            is_larger = 0 < max_bytes < memory
            if not log["removed"] and (not is_larger or max_entry_bytes):
                age = max(0, log["age_ms"]) / 1000
                bounds = [limits.max_seconds] if limits.max_seconds else []
                if max_bytes and memory >= max_bytes * TELLING_SHARE:
                    bounds.append(age * max_bytes / memory)
                kept = min(bounds, default=None)
                return LogSize(log["left"], memory, age, all_trimmed, int(log["first_ms"]), int(log["last_ms"]), kept)
            max_entry_bytes = max(1, max_bytes * log["bytes"] // memory) if is_larger else 0
