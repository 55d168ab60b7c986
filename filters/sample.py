"""``sample``: a share of all statuses, the same for everyone who asks for it."""

import re
from collections.abc import Hashable
from decimal import Decimal
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event
from filters.stable_hash import HASH_SPACE, stable_hash

SAMPLE_HASH_KEY = b"stream-server sample"
"""Fixed for ever: another key would be another sample, on replay too."""

_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,6})?|\.[0-9]{1,6}")


class Sample(Filter):
    """The events of a fixed ``percent`` of all public statuses, 0 < percent ≤ 100, by a keyed hash of the status's id.

    A smaller sample lies inside a larger one, and what becomes of a status is in the sample if the status is.
    """

    __slots__ = ("_upper_bound", "percent")

    name: ClassVar[str] = "sample"
    role: ClassVar[Role] = "whole"
    help: ClassVar[str] = "A percentage, 0 < p ≤ 100, of all public statuses; the same ones for everyone."

    def __init__(self, percent: Decimal) -> None:
        self.percent = percent.normalize()
        # An integer is below the exact bound if it is below the bound rounded up: no float, no error.
        self._upper_bound = -(int(percent * 10**6) * HASH_SPACE // -(100 * 10**6))

    @classmethod
    def parse(cls, value: str) -> Self:
        percent = Decimal(value) if _PERCENT.fullmatch(value) else Decimal(0)
        if not 0 < percent <= 100:
            raise ParameterError(
                "sample is a percentage above 0, at most 100, with at most 6 decimal places", param="sample"
            )
        return cls(percent)

    @property
    def canonical_form(self) -> Hashable:
        return self.percent

    def matches(self, event: Event) -> bool:
        return (
            event.is_sampled
            and event.is_public
            and event.status_id is not None
            and sample_position(event) < self._upper_bound
        )

    def contains_position(self, position: int) -> bool:
        """Whether a status that stands there (:func:`sample_position`) is in the share, whoever may see it."""
        return position < self._upper_bound


def sample_position(event: Event) -> int:
    """Where the event's status stands; computed once an event."""
    if event.sample_position is None:
        event.sample_position = stable_hash(event.status_id or "", SAMPLE_HASH_KEY)
    return event.sample_position
