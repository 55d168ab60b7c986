"""The positions of a term in a text, which explain a match.

The search uses the folded text. Folding changes lengths (``ß`` becomes ``ss``), so each folded character remembers its
range in the original text.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from filters import unspaced_scripts
from filters.analyzed_text import AnalyzedText
from filters.entities import NO_ENTITIES, Indices, blank_entities
from filters.tokens import fold, word_spans, words_in_order
from filters.unicode_classes import COMBINING_MARKS

_NORMALIZATION_UNIT = re.compile(rf"(?s:.)[{COMBINING_MARKS}\u1160-\u11ff]*")
"""A character with all that may combine with it in NFC: marks, and vowels and final consonants of Hangul."""

MAX_CACHED_TEXTS = 16
"""Number of texts whose folded form is cached, because explaining one rule searches many terms in one text."""


class FoldedText:
    """A folded text that knows the original position of each character. ``start`` is the position of the original."""

    def __init__(self, original: str, start: int = 0) -> None:
        self._original_spans: list[Indices] = []
        pieces = []
        for melting in _NORMALIZATION_UNIT.finditer(original):
            piece = fold(melting.group())
            pieces.append(piece)
            self._original_spans += [(start + melting.start(), start + melting.end())] * len(piece)
        self.text = "".join(pieces)

    def original_span(self, start: int, end: int) -> Indices:
        """Return the position in the original of the folded characters from ``start`` to ``end`` (at least one)."""
        return self._original_spans[start][0], self._original_spans[end - 1][1]


def find_occurrences(analyzed: AnalyzedText, term: str) -> list[Indices]:
    """Return all positions of a folded term in the text, in order and in code points.

    The term is bare or has the sign of an entity. An entity that contains the term counts as one position. The result
    is empty if and only if :meth:`filters.analyzed_text.AnalyzedText.contains_term` is False.
    """
    return sorted(
        {*_find_in_entities(analyzed, term), *_find_in_words(blank_entities(analyzed.text, analyzed.entities), term)}
    )


@lru_cache(MAX_CACHED_TEXTS)
def sequence_spans(text: str) -> tuple[Indices, ...]:
    """Return the positions in the text of each word of :attr:`filters.analyzed_text.AnalyzedText.word_sequence`."""
    folded, at, found = FoldedText(text), 0, []
    for word in words_in_order(folded.text):
        start = folded.text.index(word, at)
        at = start + len(word)
        found.append(folded.original_span(start, at))
    return tuple(found)


def _find_in_entities(analyzed: AnalyzedText, term: str) -> Iterator[Indices]:
    for name, family in analyzed.entities._asdict().items():
        for entity in family:
            if AnalyzedText("", NO_ENTITIES._replace(**{name: (entity,)})).contains_term(term):
                yield entity.indices


def _find_in_words(text: str, term: str) -> Iterator[Indices]:
    folded, words = _spans_by_word(text)
    yield from words.get(term, ())
    if unspaced_scripts.is_substring_term(term):
        for start in unspaced_scripts.find_starts(folded.text, term):
            yield folded.original_span(start, start + len(term))


@lru_cache(MAX_CACHED_TEXTS)
def _spans_by_word(text: str) -> tuple[FoldedText, Mapping[str, list[Indices]]]:
    """Return the folded form of a text without entities, and the positions of each of its words."""
    folded = FoldedText(text)
    words: dict[str, list[Indices]] = {}
    for start, end in word_spans(folded.text):
        words.setdefault(folded.text[start:end], []).append(folded.original_span(start, end))
    return folded, words
