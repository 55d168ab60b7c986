"""The guard of writes: it refuses those that Redis could not keep, so that they are not made and then called unknown.

A Redis without memory refuses every write, also those that would free some. So writes are refused before, and deletes,
jobs and log-ins still work. A Redis without a limit may be killed by the system together with all its data. With fewer
replicas than ``--write-replicas``, Redis makes every write, and no answer can confirm one.

`ClusterWatch` sees whether the core of a Redis Cluster takes writes.
"""

import asyncio
import logging
import random
from contextlib import suppress

from stream_server.errors import ApiError, Unavailable
from stream_server.store.redis.cluster_check import ClusterHealth
from stream_server.store.redis_state import RedisState, RedisStateReader

logger = logging.getLogger(__name__)

ALARM_SHARE = 0.9
"""Used share of Redis' memory at which writes are refused."""

CALM_SHARE = 0.85
"""Used share of Redis' memory below which writes are accepted again."""

CHECK_INTERVAL_SECONDS = (1.5, 2.5)
"""Shortest and longest interval in seconds between two checks. It is random, so that processes do not ask together."""

LACKING_CHECKS = 2
"""Number of checks in a row that must find too few replicas: in a failover they are few for a moment."""


class WriteGuard:
    """Checks Redis every two seconds, and decides whether writes are refused.

    Attributes:
        state: The state of Redis at the last check.
        is_nearly_full: Whether writes are refused because Redis is nearly full.
    """

    def __init__(self, redis_state: RedisStateReader, write_replicas: int, random_source: random.Random) -> None:
        """``write_replicas`` is the number of replicas that must confirm each write."""
        self.state = RedisState(replicas=write_replicas)
        self.is_nearly_full = False
        self._redis_state = redis_state
        self._write_replicas = write_replicas
        self._lacking_checks = 0
        self._random = random_source

    @property
    def missing_replicas(self) -> int:
        """How many replicas a write lacks; 0 if writes are accepted."""
        lacks = self._lacking_checks >= LACKING_CHECKS
        return self._write_replicas - self.state.replicas if lacks else 0

    @property
    def fault(self) -> str:
        """Why no write can be confirmed now, or empty. A Redis that is nearly full still confirms deletes."""
        if not self.missing_replicas:
            return ""
        connected = f"{self.state.replicas} of the {self._write_replicas} replicas that must confirm a write"
        return f"only {connected} are connected to Redis"

    async def run(self) -> None:
        """Check Redis every two seconds until cancelled. While Redis does not answer, keep the last state."""
        while True:
            with suppress(ApiError):
                await self.check()
            await asyncio.sleep(self._random.uniform(*CHECK_INTERVAL_SECONDS))

    async def check(self) -> None:
        """Look at Redis, and log if writes are refused or accepted from now on. Raises `ApiError` without an answer."""
        self.state = await self._redis_state.read()
        self._judge_memory()
        self._judge_replicas()

    def _judge_memory(self) -> None:
        share, was_full = self.state.used_share, self.is_nearly_full
        self.is_nearly_full = share >= (CALM_SHARE if was_full else ALARM_SHARE)
        if self.is_nearly_full != was_full:
            state = "refused: delete data or give Redis more memory" if self.is_nearly_full else "accepted again"
            logger.warning("Redis uses %.0f %% of its memory; writes are %s", share * 100, state)

    def _judge_replicas(self) -> None:
        lacked = bool(self.missing_replicas)
        lacks_now = self.state.replicas < self._write_replicas
        self._lacking_checks = self._lacking_checks + 1 if lacks_now else 0
        if self.missing_replicas and not lacked:
            logger.error("%s; writes are refused, and this server is not ready", self.fault)
        elif lacked and not lacks_now:
            logger.warning("%s replicas are connected to Redis; writes are accepted again", self.state.replicas)

    def refuse_writes(self) -> None:
        """Raise `Unavailable` if writes are refused now."""
        if self.is_nearly_full:
            raise Unavailable("the data store is nearly full; nothing was written", retry_after=10)
        if self.missing_replicas:
            message = "the data store has fewer replicas than must confirm a write; nothing was written"
            raise Unavailable(message, retry_after=2)


NOT_OWNED = "no node of the Redis Cluster serves the core now"
CORE_OPEN = "the core's slot of the Redis Cluster is being moved"

LOOK_SECONDS = (1.5, 2.5)
"""Shortest and longest interval in seconds between two looks at the core's owner. It is random, to spread servers."""

LOOKS_PER_CHECK = 15
"""Number of looks at the core's owner for each check of the whole cluster, which so comes every half minute."""


class ClusterWatch:
    """Watches the cluster of the store.

    Attributes:
        warnings: What was set up wrongly at the last check, each as one sentence.
    """

    def __init__(self, health: ClusterHealth, random_source: random.Random) -> None:
        self.warnings: tuple[str, ...] = ()
        self._health = health
        self._random = random_source
        self._is_core_open = False

    @property
    def fault(self) -> str:
        """Why nothing can be written now, or empty."""
        if not self._health.has_owner:
            return NOT_OWNED
        return CORE_OPEN if self._is_core_open else ""

    def detail(self) -> dict[str, object]:
        """Return the members for `/readyz`: ``warnings`` if there are any."""
        away = (f"{node} does not answer: its timelines cannot be read" for node in self._health.unreachable_nodes)
        warnings = (*self.warnings, *away)
        return {"warnings": warnings} if warnings else {}

    async def run(self) -> None:
        """Watch the cluster until cancelled. Without a cluster, only wait."""
        if not self._health.is_cluster:
            await asyncio.Event().wait()
        look = 0
        while True:
            await self.look()
            if look % LOOKS_PER_CHECK == 0:
                await self.check()
            look += 1
            await asyncio.sleep(self._random.uniform(*LOOK_SECONDS))

    async def look(self) -> None:
        """Check whether the slot of the core is open (MIGRATING or IMPORTING), and update `fault`."""
        was_open, self._is_core_open = self._is_core_open, await self._health.is_core_open()
        if self._is_core_open and not was_open:
            logger.error("%s, so nothing can be written: run `stream-server doctor`", CORE_OPEN)

    async def check(self) -> None:
        """Check the whole cluster, and update `warnings`. A new warning is logged once."""
        found = tuple(finding.sentence for finding in await self._health.find_faults())
        for sentence in found:
            if sentence not in self.warnings:
                logger.warning("Redis Cluster: %s", sentence)
        self.warnings = found
