"""The order of a home timeline by importance: one pure formula.

    importance = interest · closeness · 2^(-age / 12 h)

    interest   = 1 + log2(1 + likes + 2·comments + 3·reposts)      counters of the original for a plain repost
    closeness  = 1 + log2(1 + n) + (1 if both follow each other)   n: how many of the viewer's 100 newest likes went to
                                                                   the author; closeness is 1 for own statuses

A status without reactions loses half of its importance every twelve hours. A status with 7 likes is as important as a
status without likes that is two half-lives younger. All statuses age at the same rate, so the order changes only by
what users do, not by waiting. Therefore a page cursor stays valid.
"""

from math import log2
from typing import NamedTuple

HALF_LIFE_MS = 12 * 3_600_000
"""Age in milliseconds at which a status has lost half of its importance."""

RANK_STEPS_PER_DOUBLING = 1_000_000
"""Steps of :func:`rank` per doubling of importance. A rank is a whole number; equal ranks are ordered by id."""


class RankingInputs(NamedTuple):
    """The facts about a status that decide its importance for a viewer.

    Attributes:
        posted_ms: Time of posting, in milliseconds since 1970.
        likes_given: How many of the viewer's 100 newest likes went to statuses of the author.
        is_mutual: Whether viewer and author follow each other.
        is_own: Whether the viewer is the author.
    """

    posted_ms: int
    likes: int = 0
    comments: int = 0
    reposts: int = 0
    likes_given: int = 0
    is_mutual: bool = False
    is_own: bool = False


def rank(inputs: RankingInputs) -> int:
    """Return the rank of a status: a whole number, higher for a more important status. It does not change with time."""
    return round(RANK_STEPS_PER_DOUBLING * (log2(_weight_without_age(inputs)) + inputs.posted_ms / HALF_LIFE_MS))


def _weight_without_age(inputs: RankingInputs) -> float:
    interest = 1 + log2(1 + inputs.likes + 2 * inputs.comments + 3 * inputs.reposts)
    closeness = 1.0 if inputs.is_own else 1 + log2(1 + inputs.likes_given) + inputs.is_mutual
    return interest * closeness
