"""The repair loop: check and repair the whole store at intervals, in one process at a time."""

import asyncio
import logging
import random

from stream_server.jobs.workers import none_if_unavailable
from stream_server.store.jobs.repair import Repair

logger = logging.getLogger(__name__)

REPAIR_SECONDS = 3600.0
"""Interval of the repair runs in seconds. A run reads the whole store, and what it mends is never a lost post."""

LOCK_POLL_SECONDS = 10.0
"""Longest interval in seconds between two attempts to take the lock of the repair run."""


class RepairLoop:
    """Checks and repairs all stored data once per interval, in only one of all processes: the one with a lock in Redis.

    ``findings`` counts the faults that this process found and repaired.
    """

    def __init__(self, repair: Repair, random_source: random.Random) -> None:
        self._repair = repair
        self._random = random_source
        self.findings = 0

    async def run(self, interval_seconds: float = REPAIR_SECONDS) -> None:
        """Repair the stored data every ``interval_seconds`` until cancelled.

        The first run starts after one interval, not at the start of the server.
        """
        await none_if_unavailable(lambda: self._repair.try_lock(interval_seconds))
        while True:
            await asyncio.sleep(min(LOCK_POLL_SECONDS, interval_seconds) * self._random.uniform(0.5, 1))
            if await none_if_unavailable(lambda: self._repair.try_lock(interval_seconds)):
                for finding in await none_if_unavailable(lambda: self._repair.run(fix=True)) or []:
                    self.findings += 1
                    logger.warning("repaired %s %s: %s", finding.kind, finding.subject, finding.message)
