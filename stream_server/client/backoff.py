"""Delays between reconnects: they grow with each failure, and are random so that clients spread out."""

import random
from collections.abc import Callable
from dataclasses import dataclass

SERVER_DELAY_JITTER = 0.25
"""A server's delay is extended by up to this share, because the server may name the same delay to all clients."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Computes random delays before retries, which grow with the number of failures in a row.

    The upper limit of a delay is ``initial_seconds`` at first. Each failure doubles it, up to ``max_seconds``. The
    delay is random between half of the limit and the limit. ``random_source`` returns numbers from 0 to 1.
    """

    initial_seconds: float = 0.5
    max_seconds: float = 30.0
    random_source: Callable[[], float] = random.random

    def delay(self, failures: int, server_delay: float | None = None) -> float:
        """Return the seconds to wait before a retry, after ``failures`` earlier failures in a row.

        If the server asked for a delay (``server_delay``, in seconds), the result is at least that delay plus 0 to 25
        %.
        """
        nominal = min(self.max_seconds, self.initial_seconds * 2.0 ** min(failures, 32))
        delay = nominal * (0.5 + self.random_source() / 2)
        if server_delay is None:
            return delay
        return max(delay, server_delay * (1 + SERVER_DELAY_JITTER * self.random_source()))
