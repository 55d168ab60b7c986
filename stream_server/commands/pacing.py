"""When the next status is due."""

from collections.abc import Callable
from dataclasses import dataclass

DueTime = Callable[[int, float | None], float]
"""The seconds after the start at which status number i, posted at that Unix time (None: unknown), is due."""


@dataclass(frozen=True, slots=True)
class SteadyPace:
    """``rate`` of them a second."""

    rate: float

    def __call__(self, number: int, _: float | None) -> float:
        return number / self.rate


class OriginalPace:
    """``speed`` times the pace of the recording itself; one without a time, or out of order, is due at once."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._first: float | None = None

    def __call__(self, _: int, posted: float | None) -> float:
        if posted is None:
            return 0.0
        if self._first is None:
            self._first = posted
        return (posted - self._first) / self._speed


def at_once(_: int, __: float | None) -> float:
    """As fast as the server takes them."""
    return 0.0
