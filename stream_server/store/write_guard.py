"""The guard of writes: it refuses those that Redis could not keep, so that they are not made and then called unknown.

A Redis without memory refuses every write, also those that would free some. So writes are refused before, and deletes,
jobs and log-ins still work. A Redis without a limit may be killed by the system together with all its data. With fewer
replicas than ``--write-replicas``, Redis makes every write, and no answer can confirm one: each would be
`outcome_unknown`, and its author would repeat it again and again.

A server whose Redis takes no write is not ready, so that a load balancer prefers another one: Redis is a replica now
(READONLY), cannot save (MISCONF), lacks replicas itself (NOREPLICAS), or is a node of a cluster whose slot of the core
is being moved (ASK). A write that changes nothing finds that out.
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from redis.exceptions import ResponseError

from stream_server.errors import ApiError, Unavailable
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.pipelined_connection import NoReply
from stream_server.store.redis.protocol import parse_info
from stream_server.store.redis.refusals import code_of, message_of, unavailable_error


class RedisState(NamedTuple):
    """Bytes that Redis uses and may use (its ``maxmemory``, else its machine's memory), and its number of replicas.

    ``limit_bytes`` is 0 if Redis tells neither. ``refusal`` is what it says to a write, or empty if it takes writes.
    ``at`` is its time in seconds since 1970, ``allocator`` the library by which it takes memory, such as ``libc``.
    """

    used_bytes: int = 0
    limit_bytes: int = 0
    replicas: int = 0
    refusal: str = ""
    at: float = 0.0
    allocator: str = ""

    @property
    def used_share(self) -> float:
        """The share of its memory limit that Redis uses. 0 if its limit is unknown or it has none."""
        return self.used_bytes / self.limit_bytes if self.limit_bytes else 0.0


class RedisStateReader:
    """Asks the primary Redis for its state."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def read(self) -> RedisState:
        """Return the state of the primary. Raises `ApiError` if Redis does not answer, or forbids INFO."""
        refusal = await find_write_refusal(self._redis)
        memory, replication, now = await self._redis.execute(("INFO", "memory"), ("INFO", "replication"), ("TIME",))
        state = parse_state(parse_info(memory) | parse_info(replication))
        return state._replace(refusal=refusal, at=int(now[0]) + int(now[1]) / 1e6)


async def find_write_refusal(redis: RedisClient) -> str:
    """Send Redis a write that changes nothing. Return the text of its refusal; empty if Redis takes the write.

    Redis judges a command before it looks for the key, which never exists. Raises `ApiError` if it does not answer.
    """
    probe = ("SET", keys.key_for("request", "doctor"), "", "XX")
    try:
        (reply,) = await redis.run_pipeline([probe], redis.timeout_seconds)
    except NoReply as lost:
        raise unavailable_error() from lost
    return f"{code_of(reply)} {message_of(reply)}" if isinstance(reply, ResponseError) else ""


def parse_state(info: Mapping[str, str]) -> RedisState:
    """Return the state of the Redis that answered INFO with these fields."""
    limit = int(info.get("maxmemory", 0)) or int(info.get("total_system_memory", 0))
    used = int(info.get("used_memory", 0))
    return RedisState(used, limit, count_replicas(info), allocator=info.get("mem_allocator", ""))


def count_replicas(info: Mapping[str, str]) -> int:
    """Return how many replicas have the data and answered lately, by ``INFO replication`` of their primary.

    If a hosted Redis tells only the number of connected replicas, this number is returned.
    """
    rows = [value for name, value in info.items() if re.fullmatch(r"slave\d+", name)]
    if not rows:
        return int(info.get("connected_slaves", 0))
    states = (re.search(r"state=online,.*\blag=(\d+)", row) for row in rows)
    # A replica speaks once a second. The lag is the time in seconds since it did.
    return sum(state is not None and int(state[1]) <= 5 for state in states)


logger = logging.getLogger(__name__)

ALARM_SHARE = 0.9
"""Used share of Redis' memory at which writes are refused."""

CHECK_INTERVAL_SECONDS = (1.5, 2.5)
"""Shortest and longest interval in seconds between two checks. It is random, so that processes do not ask together."""

FAULTY_CHECKS = 2
"""Number of checks in a row that must find that no write can be confirmed. In a failover, one or another finds it."""

CORE_OPEN = "the core's slot of the Redis Cluster is being moved: run `stream-server doctor`"


class WriteGuard:
    """Checks Redis every two seconds, and decides whether writes are refused.

    Attributes:
        state: The state of Redis at the last check.
        is_nearly_full: Whether writes are refused because Redis is nearly full.
        is_refusing: Whether writes are refused, for this or for another reason.
        fault: Why no write can be confirmed now, or empty. A Redis that is nearly full still confirms deletes.
    """

    def __init__(
        self, redis_state: RedisStateReader, write_replicas: int,
        compare_clocks: Callable[[float, float, float], object],
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """Guard a Redis of which ``write_replicas`` must confirm each write.

        ``compare_clocks`` gets Redis' time, and the times before and after by ``clock``: `ClockCheck.compare`.
        """
        self.state = RedisState(replicas=write_replicas)
        self.is_nearly_full = self.is_refusing = False
        self.fault = ""
        self._clock, self._compare_clocks = clock, compare_clocks
        self._redis_state = redis_state
        self._write_replicas = write_replicas
        self._faulty_checks = 0

    @property
    def missing_replicas(self) -> int:
        """How many replicas a write lacks; 0 if writes are accepted."""
        return max(0, self._write_replicas - self.state.replicas) if self.fault else 0

    async def run(self) -> None:
        """Check Redis every two seconds until cancelled. While Redis does not answer, keep the last state."""
        while True:
            with suppress(ApiError):
                await self.check()
            await asyncio.sleep(random.uniform(*CHECK_INTERVAL_SECONDS))

    async def check(self) -> None:
        """Look at Redis, and log if writes are refused or accepted from now on. Raises `ApiError` without an answer."""
        started = self._clock()
        self.state = await self._redis_state.read()
        self._compare_clocks(self.state.at, started, self._clock())
        share, was_full = self.state.used_share, self.is_nearly_full
        self.is_nearly_full = share >= (0.85 if was_full else ALARM_SHARE)  # so that it does not change to and fro
        if self.is_nearly_full != was_full:
            state = "refused: delete data or give Redis more memory" if self.is_nearly_full else "accepted again"
            logger.warning("Redis uses %.0f %% of its memory; writes are %s", share * 100, state)
        found, had_fault = "", bool(self.fault)
        if self.state.replicas < self._write_replicas:
            connected = f"{self.state.replicas} of the {self._write_replicas} replicas that must confirm a write"
            found = f"only {connected} are connected to Redis"
        elif self.state.refusal.startswith("ASK "):  # the core's primary says so of a key that has been moved already
            found = CORE_OPEN
        elif self.state.refusal and not self.state.refusal.startswith("OOM"):  # a full Redis still takes deletes
            found = f"Redis refuses writes: {self.state.refusal}"
        self._faulty_checks = self._faulty_checks + 1 if found else 0
        self.fault = found if self._faulty_checks >= FAULTY_CHECKS else ""
        if self.fault and not had_fault:
            logger.error("%s; writes are refused, and this server is not ready", self.fault)
        elif had_fault and not self.fault:
            logger.warning("Redis takes writes again, and this server is ready")
        self.is_refusing = self.is_nearly_full or bool(self.fault)

    def refuse_writes(self) -> None:
        """Raise `Unavailable` if Redis was nearly full, or had too few replicas, at the last checks.

        What Redis refuses itself is not refused here, so that the first write after a failover succeeds.
        """
        if self.is_nearly_full:
            raise Unavailable("the data store is nearly full; nothing was written", retry_after=10)
        if self.missing_replicas:
            message = "the data store has fewer replicas than must confirm a write; nothing was written"
            raise Unavailable(message, retry_after=2)
