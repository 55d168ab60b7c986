"""The filter ``min_length``: ``min_length=100`` passes only events whose text has 100 characters or more."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event

MAX_CHARACTERS = 10_000
"""Maximum value of the parameter."""


class MinLength(Filter):
    """Narrows a stream to long texts.

    The event of a delete carries the text of its post, so the delete passes if and only if the post passed.
    """

    name: ClassVar[str] = "min_length"
    role: ClassVar[Role] = "narrowing"
    help: ClassVar[str] = "A number: only texts of at least this many characters."

    def __init__(self, characters: int) -> None:
        self.characters = characters

    @classmethod
    def parse(cls, value: str) -> Self:
        """Make the filter from a decimal number from 1 to :data:`MAX_CHARACTERS`."""
        if not (value.isascii() and value.isdigit() and 1 <= len(value) <= 5 and 1 <= int(value) <= MAX_CHARACTERS):
            raise ParameterError(f"min_length takes a number from 1 to {MAX_CHARACTERS}", param="min_length")
        return cls(int(value))

    @property
    def canonical_form(self) -> Hashable:
        """The minimum length. Streams with equal values share the work."""
        return self.characters

    def matches(self, event: Event) -> bool:
        """Whether the text has at least the minimum length."""
        return len(event.text) >= self.characters
