"""How long to wait before coming back: longer each time, and never all clients at once."""

import random
from collections.abc import Callable
from dataclasses import dataclass

SERVER_DELAY_JITTER = 0.25
"""A delay that the server named is stretched by up to this share: it named the same to everybody."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: about ``initial_seconds``, doubling up to ``max_seconds``, each drawn anew from its upper half.

    ``random_source`` gives numbers from 0 to 1; tests hand in their own.
    """

    initial_seconds: float = 0.5
    max_seconds: float = 30.0
    random_source: Callable[[], float] = random.random

    def delay(self, failures: int, server_delay: float | None = None) -> float:
        """The wait after so many failures in a row (0 is the first), at least the ``server_delay`` one of the server."""
        whole = min(self.max_seconds, self.initial_seconds * 2.0 ** min(failures, 32))
        drawn = whole * (0.5 + self.random_source() / 2)
        return (
            drawn
            if server_delay is None
            else max(drawn, server_delay * (1 + SERVER_DELAY_JITTER * self.random_source()))
        )
