"""The trimmer: every server and worker looks after the end of the log, a few times a minute.

It may be done by many at once, and by nobody for hours: what was left is taken off in slices by whoever comes next.
"""

import asyncio
import logging
import random
from contextlib import suppress

from stream_server.errors import ApiError, Unavailable
from stream_server.store.log.retention import LogSize, Retention, RetentionLimits

logger = logging.getLogger(__name__)

CHECK_INTERVAL_SECONDS = (4.0, 6.0)
"""Between two looks; at random, so that many processes do not look together."""


class LogTrimmer:
    """Keeps the log within ``limits``, which may be set anew at any time.

    ``log_size`` is what was there at the last look, ``trimmed_entries`` counts the entries that this process took off.
    """

    def __init__(self, retention: Retention, limits: RetentionLimits, random_source: random.Random) -> None:
        self.log_size = LogSize()
        self.trimmed_entries = 0
        self._retention = retention
        self._limits = limits
        self._random = random_source
        self._limits_changed = asyncio.Event()

    @property
    def limits(self) -> RetentionLimits:
        """What the log may keep."""
        return self._limits

    def set_limits(self, limits: RetentionLimits) -> None:
        """From now on these are the bounds; it is looked at once whether the log is within them."""
        self._limits = limits
        self._limits_changed.set()

    async def run(self) -> None:
        """Look now and every few seconds, until cancelled; a Redis that is away is waited out."""
        while True:
            self._limits_changed.clear()
            await self._try_trim()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(*CHECK_INTERVAL_SECONDS)):
                    await self._limits_changed.wait()

    async def _try_trim(self) -> None:
        try:
            await self.trim()
        except Unavailable as error:
            logger.debug("the log waits to be trimmed: %s", error.message)  # others say it loudly enough
        except ApiError as error:
            logger.warning("the log is not kept within its bounds: %s", error.message)

    async def trim(self) -> None:
        """Look once. Raises Unavailable."""
        self.log_size = await self._retention.trim(self._limits)
        self.trimmed_entries += self.log_size.trimmed
        if self.log_size.trimmed:
            logger.debug(
                "%d entries left the log; it reaches back %.0f s", self.log_size.trimmed, self.log_size.age_seconds
            )
