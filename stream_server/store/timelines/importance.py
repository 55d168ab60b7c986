"""The order of importance of a home timeline: one formula, pure.

    importance = interest · closeness · 2^(-age / 12 h)

    interest   = 1 + log2(1 + likes + 2·comments + 3·reposts)      of the original, for a repost without words
    closeness  = 1 + log2(1 + n) + (1 if both follow each other)   n: how many of the viewer's 100 newest likes are the
                                                                   author's; 1 for one's own

So what nobody reacted to loses half of its importance in twelve hours, and a status with 7 likes is level with a bare
one two half-lives younger. Since everything ages at the same pace, the order does not change by waiting, only by what
people do: a cursor holds.
"""

from math import exp2, log2
from typing import NamedTuple

HALF_LIFE_MS = 12 * 3_600_000

RANK_STEPS_PER_DOUBLING = 1_000_000
"""A rank is the logarithm of an importance in millionths, a whole number: equal ones are ordered by id."""


class RankingInputs(NamedTuple):
    """What is known of a status; ``posted_ms`` since 1970, ``likes_given`` by the viewer to its author."""

    posted_ms: int
    likes: int = 0
    comments: int = 0
    reposts: int = 0
    likes_given: int = 0
    is_mutual: bool = False
    is_own: bool = False


def importance(inputs: RankingInputs, now_ms: int) -> float:
    """How important a status is at a moment, for comparing with others at that moment."""
    return _timeless_weight(inputs) * exp2((inputs.posted_ms - now_ms) / HALF_LIFE_MS)


def rank(inputs: RankingInputs) -> int:
    """A number that orders statuses as :func:`importance` does at any moment; zero or more."""
    return round(RANK_STEPS_PER_DOUBLING * (log2(_timeless_weight(inputs)) + inputs.posted_ms / HALF_LIFE_MS))


def _timeless_weight(inputs: RankingInputs) -> float:
    interest = 1 + log2(1 + inputs.likes + 2 * inputs.comments + 3 * inputs.reposts)
    closeness = 1.0 if inputs.is_own else 1 + log2(1 + inputs.likes_given) + inputs.is_mutual
    return interest * closeness
