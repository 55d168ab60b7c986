"""Where a term stands in a text: the indices that explain a match.

The text is looked at folded, and folding changes lengths (``ß`` is ``ss``), so each folded character remembers the
stretch of the text that it came from.
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
"""A character with what may become one with it in NFC: marks, vowels and final consonants of Hangul."""

MAX_CACHED_TEXTS = 16
"""So many texts stay folded: whoever explains a rule looks for many terms in one text."""


class FoldedText:
    """A folded text that knows where its characters come from: those from ``start`` on of an original."""

    def __init__(self, original: str, start: int = 0) -> None:
        self._original_spans: list[Indices] = []
        pieces = []
        for melting in _NORMALIZATION_UNIT.finditer(original):
            piece = fold(melting.group())
            pieces.append(piece)
            self._original_spans += [(start + melting.start(), start + melting.end())] * len(piece)
        self.text = "".join(pieces)

    def original_span(self, start: int, end: int) -> Indices:
        """Where in the original the folded characters from ``start`` to ``end`` stand; they are one or more."""
        return self._original_spans[start][0], self._original_spans[end - 1][1]


def find_occurrences(analyzed: AnalyzedText, term: str) -> list[Indices]:
    """All places of a folded term, bare or with the sign of an entity, in the text; in order, in code points.

    An entity in which the term is found is one place. There is a place if, and only if,
    :meth:`filters.analyzed_text.AnalyzedText.contains_term` finds the term.
    """
    return sorted(
        {*_find_in_entities(analyzed, term), *_find_in_words(blank_entities(analyzed.text, analyzed.entities), term)}
    )


@lru_cache(MAX_CACHED_TEXTS)
def sequence_spans(text: str) -> tuple[Indices, ...]:
    """Where the words of :attr:`filters.analyzed_text.AnalyzedText.word_sequence` stand in a text, one after the other."""
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
    """A text without entities, and where each word stands in it that is set apart."""
    folded = FoldedText(text)
    words: dict[str, list[Indices]] = {}
    for start, end in word_spans(folded.text):
        words.setdefault(folded.text[start:end], []).append(folded.original_span(start, end))
    return folded, words
