"""The guard of writes: it refuses those that Redis could not keep, so that they are not made and then called unknown.

A Redis without memory refuses every write, also those that would free some. So writes are refused before, and deletes,
jobs and log-ins still work. A Redis without a limit may be killed by the system together with all its data. With fewer
replicas than ``--write-replicas``, Redis makes every write, and no answer can confirm one.
"""

import asyncio
import logging
import random
from contextlib import suppress

from stream_server.errors import ApiError, Unavailable
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
        """Raise `Unavailable` if Redis was nearly full, or had too few replicas, at the last check."""
        if self.is_nearly_full:
            raise Unavailable("the data store is nearly full; nothing was written", retry_after=10)
        if self._lacking_checks >= LACKING_CHECKS:
            message = "the data store has fewer replicas than must confirm a write; nothing was written"
            raise Unavailable(message, retry_after=2)
