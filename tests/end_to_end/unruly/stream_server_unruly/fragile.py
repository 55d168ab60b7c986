"""The filter ``fragile=VALUE``. The value says where it raises an exception."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.event import Event
from filters.index_keys import Key


class Fragile(Filter):
    """Raises in `parse` for ``broken``, in its keys for ``keyless``, and when it matches a text with ``boom``."""

    name: ClassVar[str] = "fragile"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "A word that must be in the text."

    def __init__(self, word: str) -> None:
        self.word = word

    @classmethod
    def parse(cls, value: str) -> Self:
        if value == "broken":
            raise KeyError(value)
        return cls(value)

    @property
    def canonical_form(self) -> Hashable:
        return self.word

    def candidate_keys(self) -> frozenset[Key]:
        if self.word == "keyless":
            raise ZeroDivisionError
        return frozenset((self.word,))

    def matches(self, event: Event) -> bool:
        if "boom" in event.text:
            raise ZeroDivisionError
        return self.word in event.terms
