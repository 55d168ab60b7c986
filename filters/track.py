"""``track``: phrases; a comma is OR, a blank is AND."""

from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters import unspaced_scripts
from filters.base import Filter, MatchedItem, Role
from filters.comma_list import split_list
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Clause, IndexTerms, Key, estimate_rarity, rarest_key
from filters.occurrences import find_occurrences
from filters.tokens import fold

MAX_PHRASES = 400
"""The most phrases of one filter."""

MAX_PHRASE_BYTES = 60
"""The most bytes of one phrase, in UTF-8."""

MAX_CANDIDATE_KEYS = 3
"""So many keys are looked for of a phrase that must be looked for in the text itself: few paths, few false ones."""

_FULLWIDTH_SIGNS = {"\uff03": "#", "\uff20": "@", "\uff04": "$"}


class Track(Filter):
    """Events whose text has all terms of one of the phrases, in any order (Streaming spec, ``track``).

    A bare term is found in words, hashtags, mentions and parts of links; ``#x``, ``@x`` and ``$x`` only in their
    kind of entity. Punctuation in a term belongs to it: ``hello_message.`` is no word of any text. A term of a script without
    blanks is found wherever it stands (:mod:`filters.unspaced_scripts`).
    """

    __slots__ = ("_phrases", "_single_terms", "_substring_phrases", "_word_phrases")

    name: ClassVar[str] = "track"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "Phrases: a comma is OR, a blank is AND; `#x`, `@x`, `$x` match that kind of entity only."

    def __init__(self, phrases: Collection[Clause]) -> None:
        self._phrases = frozenset(phrases)
        self._substring_phrases = {
            phrase: _required_keys(phrase)
            for phrase in self._phrases
            if any(map(unspaced_scripts.needs_substring_search, phrase))
        }
        self._word_phrases = self._phrases - self._substring_phrases.keys()
        self._single_terms = frozenset(term for phrase in self._word_phrases if len(phrase) == 1 for term in phrase)

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls(
            [_parse_phrase(text) for text in split_list(value, param="track", max_items=MAX_PHRASES, noun="phrases")]
        )

    @property
    def canonical_form(self) -> Hashable:
        return self._phrases

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset(map(rarest_key, (*self._word_phrases, *self._substring_phrases.values())))

    def exact_clauses(self) -> Collection[Clause] | None:
        # That all pairs of a long term are there does not say that they stand together.
        return None if self._substring_phrases else self._phrases

    def index_terms(self) -> IndexTerms:
        """A phrase of words is proof; of one with a long term, its rarest keys lead to where it is looked for."""
        hints = (
            sorted(needed, key=estimate_rarity)[-MAX_CANDIDATE_KEYS:] for needed in self._substring_phrases.values()
        )
        return IndexTerms(self._word_phrases, list(map(frozenset, hints)))

    def matches(self, event: Event) -> bool:
        terms = event.terms
        if not self._single_terms.isdisjoint(terms) or any(phrase <= terms for phrase in self._word_phrases):
            return True
        return any(
            needed <= terms and all(map(event.analyzed_text.contains_term, phrase))
            for phrase, needed in self._substring_phrases.items()
        )

    def explain(self, event: Event) -> list[MatchedItem]:
        """Each term of each phrase that matched, with all its places in the text, which a repost has from another."""
        said = event.analyzed_text
        terms = {term for phrase in self._phrases if all(map(said.contains_term, phrase)) for term in phrase}
        found = sorted((find_occurrences(said, term), term) for term in terms)
        return [
            {"filter": "track", "term": term, "indices": [list(place) for place in places]} for places, term in found
        ]


def _parse_phrase(text: str) -> Clause:
    # A lone surrogate, which JSON can smuggle in, is counted like any other character and matches nothing.
    size = len(text.encode(errors="surrogatepass"))
    if not 1 <= size <= MAX_PHRASE_BYTES:
        raise ParameterError(f"a phrase of track has 1 to {MAX_PHRASE_BYTES} bytes, not {size}", param="track")
    return frozenset(_normalize_sign(fold(word)) for word in text.split())


def _required_keys(phrase: Clause) -> Clause:
    return frozenset[Key]().union(*map(unspaced_scripts.required_words, phrase))


def _normalize_sign(word: str) -> str:
    return _FULLWIDTH_SIGNS.get(word[0], word[0]) + word[1:]
