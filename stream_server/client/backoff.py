"""Delays between reconnects: they grow with each failure, and are random so that clients spread out."""

import random
from collections.abc import Callable
from dataclasses import dataclass

SERVER_DELAY_JITTER = 0.25
"""A delay named by the server is extended by up to this share, because the server may name the same one to all
clients.
"""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Computes reconnect delays. The nominal delay doubles with each failure; each delay is random in its upper half.

    Attributes:
        initial_seconds: Nominal delay after the first failure.
        max_seconds: Largest nominal delay.
        random_source: Returns numbers from 0 to 1. Tests pass their own.
    """

    initial_seconds: float = 0.5
    max_seconds: float = 30.0
    random_source: Callable[[], float] = random.random

    def delay(self, failures: int, server_delay: float | None = None) -> float:
        """Return the seconds to wait after ``failures`` earlier failures in a row (0 for the first failure).

        The result is at least ``server_delay``, a delay in seconds that the server named.
        """
        nominal = min(self.max_seconds, self.initial_seconds * 2.0 ** min(failures, 32))
        delay = nominal * (0.5 + self.random_source() / 2)
        return (
            delay
            if server_delay is None
            else max(delay, server_delay * (1 + SERVER_DELAY_JITTER * self.random_source()))
        )
