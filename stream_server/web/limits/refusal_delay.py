"""Delays the refusals of a client that does not slow down, so that a flood of refused requests costs little.

A client that waits as `Retry-After` says never meets the delay. A connection carries one request at a time, so a
flood can send only as many requests in a second as its connections allow.
"""

import time
from collections import Counter
from collections.abc import Callable

PROMPT_REFUSALS = 10
"""Refusals of one address in a second that are answered at once."""

DELAY_SECONDS = 0.5
"""Seconds that each further refusal in this second waits."""


class RefusalDelay:
    """Counts the refusals of each address in the current second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._second = 0
        self._counts: Counter[str] = Counter()

    def seconds(self, address: str) -> float:
        """Count one refusal of an address. Return the number of seconds by which to delay the answer."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._counts.clear()
        self._counts[address] += 1
        return DELAY_SECONDS if self._counts[address] > PROMPT_REFUSALS else 0.0
