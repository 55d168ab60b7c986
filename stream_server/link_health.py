"""Whether the link to Redis is well, since when it is not, and how long to wait before it is dialled again."""

import asyncio
import random
import time
from collections.abc import Callable

BACKOFF_SECONDS = (0.05, 2.0)
"""Wait before dialling again: the first and the longest, doubled in between, with jitter."""

STEADY_SECONDS = 5.0
"""Who was well for so long begins with the first wait again: a link that flaps is not dialled at each flap."""


class LinkHealth:
    """One link's. Its clock never jumps: ``monotonic`` gives seconds of no particular beginning."""

    def __init__(self, chance: random.Random, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._chance = chance
        self._monotonic = monotonic
        self._well_at = monotonic()
        self._since: float | None = None
        self._wait = BACKOFF_SECONDS[0] / 2
        self.well = asyncio.Event()

    def seen_well(self) -> None:
        """It is known to be well at this moment."""
        self._well_at = self._monotonic()
        if self._since is None:
            self._since = self._well_at
        self.well.set()

    def lost(self) -> float:
        """It is not, or may not be; gives the seconds to wait before it is dialled again."""
        steady = self._since is not None and self._monotonic() - self._since >= STEADY_SECONDS
        self._since = None
        self.well.clear()
        shortest, longest = BACKOFF_SECONDS
        self._wait = shortest if steady else min(longest, self._wait * 2)
        return min(longest, self._wait * self._chance.uniform(0.5, 1.5))

    def lag_ms(self) -> int:
        """How long ago it was known to be well, if it is not; 0 while it is."""
        return 0 if self.well.is_set() else round((self._monotonic() - self._well_at) * 1000)
