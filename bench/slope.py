"""Decides whether a figure grows: fits a straight line to its samples, and computes the line's standard error."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

ERRORS = 4.0
"""A slope within this many standard errors counts as flat. A line of 15 points passes it by chance once in a thousand
times. A run judges sixty lines, so at two errors it would complain of two that do not grow.
"""

LEAST_SHARE = 0.005
"""A rise by less than this share of the mean, over the sampled time, counts as flat by default."""


class Slope(NamedTuple):
    """A fitted line.

    Attributes:
        per_hour: The slope, per hour.
        error: Standard error of the slope, per hour.
        mean: Mean of the samples.
        rise: Rise of the line over the sampled time.
    """

    per_hour: float
    error: float
    mean: float
    rise: float

    def is_flat(self, least_share: float = LEAST_SHARE) -> bool:
        """Whether the figure does not grow: it rises by at most four standard errors, or this share of the mean."""
        return self.per_hour <= ERRORS * self.error or self.rise <= least_share * self.mean


def fit(seconds: Sequence[float], values: Sequence[float]) -> Slope:
    """Fit the least-squares line to at least three samples. Raises ValueError for fewer."""
    count = len(values)
    if count < 3:
        raise ValueError(f"{count} samples do not make a line")
    middle, mean = sum(seconds) / count, sum(values) / count
    spread = sum((at - middle) ** 2 for at in seconds)
    slope = sum((at - middle) * (value - mean) for at, value in zip(seconds, values, strict=True)) / spread
    apart = ((value - mean - slope * (at - middle)) ** 2 for at, value in zip(seconds, values, strict=True))
    error = sqrt(sum(apart) / (count - 2) / spread)
    return Slope(slope * 3600, error * 3600, mean, slope * (seconds[-1] - seconds[0]))
