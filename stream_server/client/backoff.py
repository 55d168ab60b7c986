"""How long to wait before coming back: longer each time, and never all clients at once."""

import random
from collections.abc import Callable
from dataclasses import dataclass

SPREAD = 0.25
"""A delay that the server named is stretched by up to this share: it named the same to everybody."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: about ``first``, doubling up to ``most``, each drawn anew from its upper half.

    ``chance`` gives numbers from 0 to 1; tests hand in their own.
    """

    first: float = 0.5
    most: float = 30.0
    chance: Callable[[], float] = random.random

    def delay(self, failures: int, named: float | None = None) -> float:
        """The wait after so many failures in a row (0 is the first), at least the ``named`` one of the server."""
        whole = min(self.most, self.first * 2.0 ** min(failures, 32))
        drawn = whole * (0.5 + self.chance() / 2)
        return drawn if named is None else max(drawn, named * (1 + SPREAD * self.chance()))
