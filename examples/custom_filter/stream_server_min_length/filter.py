"""``min_length=100``: only events whose text has a hundred characters or more."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event

MAX_CHARACTERS = 10_000


class MinLength(Filter):
    """Narrows a stream to long texts; a delete passes exactly where its post did, since it carries its text here."""

    name: ClassVar[str] = "min_length"
    role: ClassVar[Role] = "narrowing"
    help: ClassVar[str] = "A number: only texts of so many characters or more."

    def __init__(self, characters: int) -> None:
        self.characters = characters

    @classmethod
    def parse(cls, value: str) -> Self:
        """The filter for a decimal number from 1 to :data:`MAX_CHARACTERS`."""
        if not (value.isascii() and value.isdigit() and 1 <= len(value) <= 5 and 1 <= int(value) <= MAX_CHARACTERS):
            raise ParameterError(f"min_length takes a number from 1 to {MAX_CHARACTERS}", param="min_length")
        return cls(int(value))

    @property
    def canonical_form(self) -> Hashable:
        """Streams that ask for the same length share the work."""
        return self.characters

    def matches(self, event: Event) -> bool:
        """Whether the text is long enough."""
        return len(event.text) >= self.characters
