"""Whether the link to Redis is well, since when it is not, and how long to wait before it is dialled again."""

import asyncio
import random
import time
from collections.abc import Callable

BACKOFF_SECONDS = (0.05, 2.0)
"""Wait before dialling again: the first and the longest, doubled in between, with jitter."""

STABLE_SECONDS = 5.0
"""Who was well for so long begins with the first wait again: a link that flaps is not dialled at each flap."""


class LinkHealth:
    """One link's. Its clock never jumps: ``monotonic`` gives seconds of no particular beginning."""

    def __init__(self, random_source: random.Random, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._random_source = random_source
        self._monotonic = monotonic
        self._last_healthy_at = monotonic()
        self._healthy_since: float | None = None
        self._backoff_seconds = BACKOFF_SECONDS[0] / 2
        self.healthy = asyncio.Event()

    def mark_healthy(self) -> None:
        """It is known to be well at this moment."""
        self._last_healthy_at = self._monotonic()
        if self._healthy_since is None:
            self._healthy_since = self._last_healthy_at
        self.healthy.set()

    def mark_lost(self) -> float:
        """It is not, or may not be; gives the seconds to wait before it is dialled again."""
        steady = self._healthy_since is not None and self._monotonic() - self._healthy_since >= STABLE_SECONDS
        self._healthy_since = None
        self.healthy.clear()
        shortest, longest = BACKOFF_SECONDS
        self._backoff_seconds = shortest if steady else min(longest, self._backoff_seconds * 2)
        return min(longest, self._backoff_seconds * self._random_source.uniform(0.5, 1.5))

    def lag_ms(self) -> int:
        """How long ago it was known to be well, if it is not; 0 while it is."""
        return 0 if self.healthy.is_set() else round((self._monotonic() - self._last_healthy_at) * 1000)
