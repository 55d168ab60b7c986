"""How a text is searched for a term that is not one word, such as ``C#``, ``covid-19`` or ``東京タワー``.

Such a term is found where its characters stand in the text and no letter or digit directly precedes or follows them.
A term of letters with at least one character of a script without spaces is found at any position of a *run*, see
:mod:`filters.tokens`. The index finds the texts that may have the term by the words of the term.

For the search, a text is written as a *marked text*: each word stands between two marks, and every other character and
each emoji between two other marks. So one search for a string finds a term only at the borders of words.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from filters.entities import Indices, extract_entities
from filters.tokens import blank_emoji, find_starts, is_substring_term, pairs, tokens, words

WORD_START, WORD_END, OTHER_START, OTHER_END = "\x1c", "\x1d", "\x1e", "\x1f"
"""The marks around a word and around another character or emoji. They count as white space, which no term has."""


class SearchedTerm(NamedTuple):
    """A term for which the text itself must be searched, because it is not among the words and entities of a text.

    Attributes:
        term: The term, case-folded.
        required: The words of the term. Each text with the term has all of them as index keys. May be empty.
        marked: The term with marks as :func:`mark_text` sets them. Empty for a term in a script without spaces.
        begins_with_mark: Whether the term begins with punctuation, so that no word may stand directly before it.
        ends_with_mark: Whether the term ends with punctuation, so that no word may stand directly behind it.
    """

    term: str
    required: frozenset[str]
    marked: str
    begins_with_mark: bool = False
    ends_with_mark: bool = False

    def starts(self, marked_text: str) -> Iterator[int]:
        """Yield each index of a marked text (:func:`mark_text`) at which the term begins."""
        at = marked_text.find(self.marked)
        while at >= 0:
            end = at + len(self.marked)
            joined = (self.begins_with_mark and marked_text[at - 1 : at] == WORD_END) or (
                self.ends_with_mark and marked_text[end : end + 1] == WORD_START
            )
            if not joined:
                yield at
            at = marked_text.find(self.marked, at + 1)


@lru_cache(8192)
def searched_term(term: str) -> SearchedTerm | None:
    """Return how to search a text for a case-folded term. None if the term needs no search.

    A word, an emoji, an entity (``#tag``), and up to two characters of a script without spaces need no search: they are
    among the terms of each text that has them.
    """
    if term[:1] in ("#", "@", "$") and is_entity(term):
        return None
    if is_substring_term(term) and blank_emoji(term) == term:
        return SearchedTerm(term, pairs(term), "") if len(term) > 2 else None
    found = words(term)
    if found == {term}:
        return None
    spans = [token[1:] for token in tokens(term)]
    begins, ends = not spans or spans[0][0] > 0, not spans or spans[-1][1] < len(term)
    return SearchedTerm(term, frozenset(found), mark_text(term), begins, ends)


def mark_text(folded: str) -> str:
    """Return a case-folded text with a mark before and after each word, emoji and other character.

    The marks of words differ from those of other characters. So a plain search for a marked term finds it only where no
    letter or digit stands beside it.
    """
    return "".join([mark + folded[start:end] + after for mark, start, end, after in _pieces(folded)])


def find_spans(folded: str, searched: SearchedTerm) -> Iterator[Indices]:
    """Yield start and end, in code points, of each place of a case-folded text where the term stands.

    Places may overlap.
    """
    if not searched.marked:
        for start in find_starts(blank_emoji(folded), searched.term):
            yield start, start + len(searched.term)
        return
    positions, at = {}, 0
    for _, start, end, _ in _pieces(folded):
        positions[at] = start
        at += end - start + 2
    for found in searched.starts(mark_text(folded)):
        yield positions[found], positions[found] + len(searched.term)


def is_entity(term: str) -> bool:
    """Whether a term is a whole hashtag, mention or cashtag."""
    entities = extract_entities(term)
    families = (entities.hashtags, entities.mentions, entities.cashtags)
    return any(entity.indices == (0, len(term)) for family in families for entity in family)


def _pieces(folded: str) -> Iterator[tuple[str, int, int, str]]:
    """Yield each word, emoji and other character of a folded text: mark before, start, end (indices), mark behind."""
    at = 0
    for kind, start, end in tokens(folded):
        for other in range(at, start):
            yield OTHER_START, other, other + 1, OTHER_END
        yield (WORD_START, start, end, WORD_END) if kind == "word" else (OTHER_START, start, end, OTHER_END)
        at = end
    for other in range(at, len(folded)):
        yield OTHER_START, other, other + 1, OTHER_END
