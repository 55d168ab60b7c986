"""Regular upkeep: trim the log, repair the store, and let home timelines of users who stay away fall asleep.

Every server and worker process trims, and several may do it at once. The repair and the round over home timelines run
in one process an interval: the one that finds the lease free, and lets it rest for the interval.
"""

import asyncio
import logging
import random

from stream_server.errors import ApiError, Unavailable, reason_of
from stream_server.store.jobs.repair import Repair
from stream_server.store.jobs.workers import none_if_unavailable
from stream_server.store.log.retention import LogSize, Retention, RetentionLimits
from stream_server.store.social.subscriptions import Subscriptions
from stream_server.store.timelines.home_visits import IdleHomes

logger = logging.getLogger(__name__)

CHECK_INTERVAL_SECONDS = (4.0, 6.0)
"""Shortest and longest interval in seconds between two runs. It is random, so that processes do not run together."""


ENDANGERED_SHARE = 0.8
"""Share of the time that the log keeps an entry, after which a subscription that has not acknowledged it is counted."""


class LogTrimmer:
    """Keeps the log within its limits of age and bytes: removes the oldest entries every few seconds.

    Attributes:
        log_size: The log's size after the last run.
        trimmed_entries: Number of entries that this process removed.
        endangered: Number of named subscriptions that have passed :data:`ENDANGERED_SHARE` of the time after which the
            log loses what they have not acknowledged.
    """

    def __init__(self, retention: Retention, limits: RetentionLimits, subscriptions: Subscriptions) -> None:
        self.log_size = LogSize()
        self.trimmed_entries = self.endangered = 0
        self._subscriptions = subscriptions
        self._retention = retention
        self._limits = limits

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
            await asyncio.sleep(random.uniform(*CHECK_INTERVAL_SECONDS))

    async def trim(self) -> None:
        """Remove the log entries beyond the limits of age and bytes. Raises `Unavailable` if Redis does not answer.

        Count the subscriptions that will lose entries soon. One at the newest entry has nothing to lose.
        """
        self.log_size = size = await self._retention.trim(self._limits)
        if size.kept_seconds is None:
            self.endangered = 0
        else:
            now_ms = size.first_ms + size.age_seconds * 1000
            before_ms = min(now_ms - ENDANGERED_SHARE * size.kept_seconds * 1000, size.last_ms)
            self.endangered = await self._subscriptions.count_endangered(before_ms)
        self.trimmed_entries += self.log_size.trimmed
        if self.log_size.trimmed:
            logger.debug("trimmed %d entries; the log covers %.0f s", self.log_size.trimmed, self.log_size.age_seconds)


class RepairLoop:
    """Checks and repairs all stored data once per interval, in only one of all processes.

    ``findings`` counts the faults that this process found and repaired.
    """

    def __init__(self, repair: Repair) -> None:
        self._repair = repair
        self.findings = 0

    async def run(self, interval_seconds: float = 3600.0) -> None:
        """Repair the stored data every ``interval_seconds`` until cancelled.

        A run reads the whole store, and what it mends is never a lost post, so the interval is long. The first run
        starts after one interval, not at the start of the server.
        """
        await none_if_unavailable(lambda: self._repair.lease.rest(interval_seconds))
        while True:
            await asyncio.sleep(min(10, interval_seconds) * random.uniform(0.5, 1))
            if await none_if_unavailable(lambda: self._repair.lease.rest(interval_seconds)):
                for finding in await none_if_unavailable(lambda: self._repair.run(fix=True)) or []:
                    self.findings += 1
                    logger.warning("repaired %s %s: %s", finding.kind, finding.subject, finding.message)


class IdleHomesLoop:
    """Removes the home timelines of users who have not read them for ``idle_days`` days. With 0 it keeps all.

    Attributes:
        fallen: Number of home timelines that this process removed.
        page_pause_seconds: Pause after each page of keys, so that a round takes a small part of Redis' time.
    """

    def __init__(self, homes: IdleHomes, idle_days: float) -> None:
        self.fallen = 0
        self.page_pause_seconds = 0.05
        self._homes = homes
        self._idle_seconds = idle_days * 86_400

    async def run(self) -> None:
        """Run a round each hour until cancelled. Without a limit, only wait."""
        if not self._idle_seconds:
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(random.uniform(30, 60))
            if await none_if_unavailable(lambda: self._homes.lease.rest(3600)):
                await none_if_unavailable(self.run_round)

    async def run_round(self) -> None:
        """Look at all home timelines once. Raises `Unavailable` if Redis does not answer."""
        async for uids in self._homes.scan():
            self.fallen += await self._homes.let_sleep(uids, self._idle_seconds)
            await asyncio.sleep(self.page_pause_seconds)
