"""Where a term stands in a text: the indices that explain a match.

The text is looked at folded, and folding changes lengths (``ß`` is ``ss``), so each folded character remembers the
stretch of the text that it came from.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from filters import unspaced
from filters.alphabet import MARKS
from filters.entities import NO_ENTITIES, Indices, without_entities
from filters.said import Said
from filters.tokens import fold, in_order, spans

_MELTING = re.compile(rf"(?s:.)[{MARKS}\u1160-\u11ff]*")
"""A character with what may become one with it in NFC: marks, vowels and final consonants of Hangul."""

TEXTS = 16
"""So many texts stay folded: whoever explains a rule looks for many terms in one text."""


class Folded:
    """A folded text that knows where its characters come from: those from ``start`` on of an original."""

    def __init__(self, original: str, start: int = 0) -> None:
        self._origins: list[Indices] = []
        pieces = []
        for melting in _MELTING.finditer(original):
            piece = fold(melting.group())
            pieces.append(piece)
            self._origins += [(start + melting.start(), start + melting.end())] * len(piece)
        self.text = "".join(pieces)

    def original(self, start: int, end: int) -> Indices:
        """Where in the original the folded characters from ``start`` to ``end`` stand; they are one or more."""
        return self._origins[start][0], self._origins[end - 1][1]


def occurrences(said: Said, term: str) -> list[Indices]:
    """All places of a folded term, bare or with the sign of an entity, in the text; in order, in code points.

    An entity in which the term is found is one place. There is a place if, and only if,
    :meth:`filters.said.Said.has` finds the term.
    """
    return sorted({*_of_entities(said, term), *_of_words(without_entities(said.text, said.entities), term)})


@lru_cache(TEXTS)
def word_places(text: str) -> tuple[Indices, ...]:
    """Where the words of :attr:`filters.said.Said.sequence` stand in a text, one after the other."""
    folded, at, found = Folded(text), 0, []
    for word in in_order(folded.text):
        start = folded.text.index(word, at)
        at = start + len(word)
        found.append(folded.original(start, at))
    return tuple(found)


def _of_entities(said: Said, term: str) -> Iterator[Indices]:
    for name, family in said.entities._asdict().items():
        for entity in family:
            if Said("", NO_ENTITIES._replace(**{name: (entity,)})).has(term):
                yield entity.indices


def _of_words(text: str, term: str) -> Iterator[Indices]:
    folded, words = _apart(text)
    yield from words.get(term, ())
    if unspaced.stands_inside(term):
        for start in unspaced.starts(folded.text, term):
            yield folded.original(start, start + len(term))


@lru_cache(TEXTS)
def _apart(text: str) -> tuple[Folded, Mapping[str, list[Indices]]]:
    """A text without entities, and where each word stands in it that is set apart."""
    folded = Folded(text)
    words: dict[str, list[Indices]] = {}
    for start, end in spans(folded.text):
        words.setdefault(folded.text[start:end], []).append(folded.original(start, end))
    return folded, words
