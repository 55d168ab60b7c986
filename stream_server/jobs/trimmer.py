"""The trimmer: every server and worker process keeps the log within its limits, a few times a minute.

Several processes may trim at once. If no process trims for hours, the next run removes the surplus in small steps.
"""

import asyncio
import logging
import random

from stream_server.errors import ApiError, Unavailable, reason_of
from stream_server.store.log.retention import LogSize, Retention, RetentionLimits

logger = logging.getLogger(__name__)

CHECK_INTERVAL_SECONDS = (4.0, 6.0)
"""Shortest and longest interval in seconds between two runs. It is random, so that processes do not run together."""


class LogTrimmer:
    """Keeps the log within its limits of age and bytes: removes the oldest entries every few seconds.

    ``log_size`` is the log's size after the last run. ``trimmed_entries`` counts the entries that this process removed.
    """

    def __init__(self, retention: Retention, limits: RetentionLimits, random_source: random.Random) -> None:
        self.log_size = LogSize()
        self.trimmed_entries = 0
        self._retention = retention
        self._limits = limits
        self._random = random_source

    async def run(self) -> None:
        """Trim the log at once, then every few seconds until cancelled. A failure is only logged."""
        while True:
            try:
                await self.trim()
            except Unavailable as error:
                # The feed logs an unreachable Redis at a higher level.
                logger.debug("trimming is postponed, Redis is unavailable: %s", error.message)
            except ApiError as error:
                logger.warning("trimming the log failed: %s", reason_of(error))
            await asyncio.sleep(self._random.uniform(*CHECK_INTERVAL_SECONDS))

    async def trim(self) -> None:
        """Remove the log entries beyond the limits of age and bytes. Raises `Unavailable` if Redis does not answer."""
        self.log_size = await self._retention.trim(self._limits)
        self.trimmed_entries += self.log_size.trimmed
        if self.log_size.trimmed:
            logger.debug("trimmed %d entries; the log covers %.0f s", self.log_size.trimmed, self.log_size.age_seconds)
