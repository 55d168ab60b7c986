"""The positions of a term in a text, which explain a match.

The search uses the folded text. Folding changes lengths (``ß`` becomes ``ss``), so each folded character remembers its
range in the original text.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from filters import unspaced_scripts
from filters.analyzed_text import AnalyzedText
from filters.entities import NO_ENTITIES, Indices, blank_entities
from filters.term_search import find_spans, searched_term
from filters.tokens import blank_emoji, fold, tokens
from filters.unicode_classes import COMBINING_MARKS
from filters.word_sequence import blank_link_prefixes

_NORMALIZATION_UNIT = re.compile(rf"(?s:.)[{COMBINING_MARKS}\u1160-\u11ff]*")
"""A character with all that may combine with it in NFC: marks, and vowels and final consonants of Hangul."""
MAX_CACHED_TEXTS = 16  # a few, because explaining one rule searches many terms in one text


class FoldedText:
    """A case-folded text, and the position in the original text of each of its characters."""

    def __init__(self, original: str) -> None:
        self._original_spans: list[Indices] = []
        pieces = []
        for unit in _NORMALIZATION_UNIT.finditer(original):
            piece = fold(unit.group())
            pieces.append(piece)
            self._original_spans += [unit.span()] * len(piece)
        self.text = "".join(pieces)

    def original_span(self, start: int, end: int) -> Indices:
        """Return where ``text[start:end]`` of the folded text begins and ends in the original text."""
        return self._original_spans[start][0], self._original_spans[end - 1][1]


def find_occurrences(analyzed: AnalyzedText, term: str) -> list[Indices]:
    """Return start and end of each occurrence of a case-folded term in the text, in order and in code points.

    The term is a word, or an entity with its sign (``#x``). If an entity contains the term, start and end are those of
    the entity. The result is empty if and only if :meth:`filters.analyzed_text.AnalyzedText.contains_term` is False.
    """
    text = blank_entities(analyzed.text, analyzed.entities)
    return sorted({*_find_in_entities(analyzed, term), *_find_in_words(text, term)})


@lru_cache(MAX_CACHED_TEXTS)
def sequence_spans(text: str) -> tuple[Indices, ...]:
    """Return the start and end in the text of each word of :attr:`filters.analyzed_text.AnalyzedText.word_sequence`."""
    folded = FoldedText(blank_link_prefixes(text))
    return tuple(folded.original_span(start, end) for _, start, end in tokens(folded.text))


def _find_in_entities(analyzed: AnalyzedText, term: str) -> Iterator[Indices]:
    for name, family in analyzed.entities._asdict().items():
        for entity in family:
            if AnalyzedText("", NO_ENTITIES._replace(**{name: (entity,)})).contains_term(term):
                yield entity.indices


def _find_in_words(text: str, term: str) -> Iterator[Indices]:
    folded = _fold_cached(text)
    for start, end in _find_spans(folded.text, term):
        yield folded.original_span(start, end)


def _find_spans(folded: str, term: str) -> Iterator[Indices]:
    searched = searched_term(term)
    if searched is not None:
        yield from find_spans(folded, searched)
    elif unspaced_scripts.is_substring_term(term):
        for start in unspaced_scripts.find_starts(blank_emoji(folded), term):
            yield start, start + len(term)
    else:
        yield from ((start, end) for _, start, end in tokens(folded) if folded[start:end] == term)


@lru_cache(MAX_CACHED_TEXTS)
def _fold_cached(text: str) -> FoldedText:
    return FoldedText(text)
