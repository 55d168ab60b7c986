"""The memory alarm: writes are refused before Redis is full, so that deletes, jobs and log-ins still work.

A Redis without memory refuses every write, also those that would free some. A Redis without a limit may be killed by
the system together with all its data.
"""

import asyncio
import logging
import random
from contextlib import suppress

from stream_server.errors import ApiError, Unavailable
from stream_server.store.memory import MemoryUse, RedisMemory

logger = logging.getLogger(__name__)

ALARM_SHARE = 0.9
"""Used share of Redis' memory at which writes are refused."""

CALM_SHARE = 0.85
"""Used share of Redis' memory below which writes are accepted again."""

CHECK_INTERVAL_SECONDS = (1.5, 2.5)
"""Shortest and longest interval in seconds between two checks. It is random, so that processes do not ask together."""


class MemoryAlarm:
    """Measures the memory of Redis, and says whether writes are refused.

    Attributes:
        use: The memory at the last check.
        is_raised: Whether writes are refused now.
    """

    def __init__(self, memory: RedisMemory, random_source: random.Random) -> None:
        self.use = MemoryUse(0, 0)
        self.is_raised = False
        self._memory = memory
        self._random = random_source

    async def run(self) -> None:
        """Check the memory every two seconds until cancelled. While Redis does not answer, keep the last state."""
        while True:
            with suppress(ApiError):
                await self.check()
            await asyncio.sleep(self._random.uniform(*CHECK_INTERVAL_SECONDS))

    async def check(self) -> None:
        """Measure the memory, and raise or end the alarm. Raises `Unavailable` if Redis does not answer."""
        self.use = await self._memory.measure()
        share = self.use.used_bytes / self.use.limit_bytes if self.use.limit_bytes else 0.0
        was_raised, self.is_raised = self.is_raised, share >= (CALM_SHARE if self.is_raised else ALARM_SHARE)
        if self.is_raised != was_raised:
            state = "refused: delete data or give Redis more memory" if self.is_raised else "accepted again"
            logger.warning("Redis uses %.0f %% of its memory; writes are %s", share * 100, state)

    def refuse_writes(self) -> None:
        """Raise `Unavailable` if writes are refused now."""
        if self.is_raised:
            raise Unavailable("the data store is nearly full; nothing was written", retry_after=10)
