"""The filter ``shouting=WORD``: events with the word in upper case. It has no keys and is asked about every event."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event


class Shouting(Filter):
    name: ClassVar[str] = "shouting"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "A word in capital letters."

    def __init__(self, word: str) -> None:
        self.word = word

    @classmethod
    def parse(cls, value: str) -> Self:
        if not value.isupper():
            raise ParameterError("shouting takes a word in capital letters", param="shouting")
        return cls(value)

    @property
    def canonical_form(self) -> Hashable:
        return self.word

    def matches(self, event: Event) -> bool:
        return self.word in event.text
