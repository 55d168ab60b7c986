"""The loop that stops keeping home timelines of users who have not come for a time, in one process at a time."""

import asyncio
import logging
import random

from stream_server.errors import ApiError
from stream_server.store.timelines.idle_homes import IdleHomes

logger = logging.getLogger(__name__)

ROUND_INTERVAL_SECONDS = 3600.0
"""Interval in seconds between two rounds over all home timelines."""

LOCK_POLL_SECONDS = 60.0
"""Longest interval in seconds between two attempts to take the lock of a round."""

PAGE_PAUSE_SECONDS = 0.05
"""Pause in seconds after each page of keys, so that a round takes a small part of Redis' time."""

SECONDS_PER_DAY = 86_400.0


class IdleHomesLoop:
    """Removes the home timelines of users who have not read them for ``idle_days`` days. With 0 it keeps all.

    ``fallen`` counts the home timelines that this process removed.
    """

    def __init__(self, homes: IdleHomes, idle_days: float, random_source: random.Random) -> None:
        self.fallen = 0
        self.page_pause_seconds = PAGE_PAUSE_SECONDS
        self._homes = homes
        self._idle_seconds = idle_days * SECONDS_PER_DAY
        self._random = random_source

    async def run(self) -> None:
        """Run a round each hour until cancelled. Without a limit, only wait."""
        if not self._idle_seconds:
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(LOCK_POLL_SECONDS * self._random.uniform(0.5, 1))
            try:
                if await self._homes.try_lock(ROUND_INTERVAL_SECONDS):
                    await self.run_round()
            except ApiError as error:
                logger.debug("the round over idle home timelines is postponed: %s", error.message)

    async def run_round(self) -> None:
        """Look at all home timelines once. Raises `Unavailable` if Redis does not answer."""
        async for uids in self._homes.scan():
            self.fallen += await self._homes.let_sleep(uids, self._idle_seconds)
            await asyncio.sleep(self.page_pause_seconds)
