"""The trimmer: every server and worker looks after the end of the log, a few times a minute.

It may be done by many at once, and by nobody for hours: what was left is taken off in slices by whoever comes next.
"""

import asyncio
import logging
import random
from contextlib import suppress

from stream_server.errors import ApiError, Unavailable
from stream_server.store.retention import Bounds, Extent, Retention

logger = logging.getLogger(__name__)

SECONDS = (4.0, 6.0)
"""Between two looks; at random, so that many processes do not look together."""


class Trimmer:
    """Keeps the log within ``bounds``, which may be set anew at any time.

    ``extent`` is what was there at the last look, ``taken`` counts the entries that this process took off.
    """

    def __init__(self, retention: Retention, bounds: Bounds, random_source: random.Random) -> None:
        self.extent = Extent()
        self.taken = 0
        self._retention = retention
        self._bounds = bounds
        self._random = random_source
        self._renewed = asyncio.Event()

    @property
    def bounds(self) -> Bounds:
        """What the log may keep."""
        return self._bounds

    def bound(self, bounds: Bounds) -> None:
        """From now on these are the bounds; it is looked at once whether the log is within them."""
        self._bounds = bounds
        self._renewed.set()

    async def run(self) -> None:
        """Look now and every few seconds, until cancelled; a Redis that is away is waited out."""
        while True:
            self._renewed.clear()
            await self._look()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(*SECONDS)):
                    await self._renewed.wait()

    async def _look(self) -> None:
        try:
            await self.turn()
        except Unavailable as error:
            logger.debug("the log waits to be trimmed: %s", error.message)  # others say it loudly enough
        except ApiError as error:
            logger.warning("the log is not kept within its bounds: %s", error.message)

    async def turn(self) -> None:
        """Look once. Raises Unavailable."""
        self.extent = await self._retention.turn(self._bounds)
        self.taken += self.extent.taken
        if self.extent.taken:
            logger.debug("%d entries left the log; it reaches back %.0f s", self.extent.taken, self.extent.age_seconds)
