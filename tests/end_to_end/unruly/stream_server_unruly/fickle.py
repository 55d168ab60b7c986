"""The filter ``fickle=HOW``. It matches events with the word in a file, which a test edits or deletes."""

import os
from collections.abc import Hashable
from pathlib import Path
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.event import Event
from filters.index_keys import IndexTerms, Key


class Fickle(Filter):
    """``HOW`` is ``proofs`` or ``hints``, the kind of clauses that the word gives."""

    name: ClassVar[str] = "fickle"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "How the word leads to it."

    def __init__(self, how: str) -> None:
        self.how = how

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls(value)

    @property
    def canonical_form(self) -> Hashable:
        return self.how

    def _words(self) -> frozenset[Key]:
        return frozenset({Path(os.environ["UNRULY_WORD"]).read_text()})

    def candidate_keys(self) -> frozenset[Key]:
        return self._words()

    def index_terms(self) -> IndexTerms:
        return IndexTerms([self._words()]) if self.how == "proofs" else IndexTerms((), [self._words()])

    def matches(self, event: Event) -> bool:
        return self._words() <= event.terms
