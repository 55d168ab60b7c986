"""When each status of a replay is due."""

from collections.abc import Callable
from dataclasses import dataclass

DueTime = Callable[[int, float | None], float]
"""A function that returns when a status is due, in seconds after the start.

Its arguments are the number of the status and its Unix time, None if unknown.
"""


@dataclass(frozen=True, slots=True)
class SteadyPace:
    """A constant ``rate`` of statuses per second."""

    rate: float

    def __call__(self, number: int, _: float | None) -> float:
        return number / self.rate


class OriginalPace:
    """The pace of the recording times ``speed``. A status without a time, or out of order, is due at once."""

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
    """Return 0: every status is due at once, so the server's speed alone limits the replay."""
    return 0.0
