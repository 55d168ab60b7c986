"""The filter ``min_length=100``: only events whose text has at least 100 characters."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event

MOST = 10_000
"""Largest length that a client may ask for."""


class MinLength(Filter):
    """Narrows a stream to long texts.

    A delete passes exactly if its post did, because the event carries the post's text.
    """

    name: ClassVar[str] = "min_length"
    role: ClassVar[Role] = "narrow"
    help: ClassVar[str] = "A number: only texts with at least this many characters."

    def __init__(self, characters: int) -> None:
        """Require at least ``characters`` characters."""
        self.characters = characters

    @classmethod
    def parse(cls, value: str) -> Self:
        """Parse a decimal number from 1 to :data:`MOST`. Raises ParameterError for any other text."""
        if not (value.isascii() and value.isdigit() and 1 <= len(value) <= 5 and 1 <= int(value) <= MOST):
            raise ParameterError(f"min_length takes a number from 1 to {MOST}", param="min_length")
        return cls(int(value))

    @property
    def canonical_form(self) -> Hashable:
        """The length. Streams with an equal length share the work."""
        return self.characters

    def matches(self, event: Event) -> bool:
        """Whether the text is long enough."""
        return len(event.text) >= self.characters
