"""Whether a figure grows: a straight line through what was sampled, and how sure that line is."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

ERRORS = 2.0
"""A slope within so many of its standard errors is none."""

LEAST_SHARE = 0.005
"""A rise by less than this share of the mean, over the time that was looked at, is none either."""


class Slope(NamedTuple):
    """Per hour, with its standard error; ``mean`` is the figure's, ``rise`` is over the time that was looked at."""

    per_hour: float
    error: float
    mean: float
    rise: float

    @property
    def flat(self) -> bool:
        """The rule: it does not grow by more than twice its standard error and by half a percent."""
        return self.per_hour <= ERRORS * self.error or self.rise <= LEAST_SHARE * self.mean


def fit(seconds: Sequence[float], values: Sequence[float]) -> Slope:
    """The least-squares line through at least three samples; raises ValueError for fewer."""
    count = len(values)
    if count < 3:
        raise ValueError(f"{count} samples are no line")
    middle, mean = sum(seconds) / count, sum(values) / count
    spread = sum((at - middle) ** 2 for at in seconds)
    slope = sum((at - middle) * (value - mean) for at, value in zip(seconds, values, strict=True)) / spread
    apart = ((value - mean - slope * (at - middle)) ** 2 for at, value in zip(seconds, values, strict=True))
    error = sqrt(sum(apart) / (count - 2) / spread)
    return Slope(slope * 3600, error * 3600, mean, slope * (seconds[-1] - seconds[0]))
