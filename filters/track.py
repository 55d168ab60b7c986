"""The filter ``track``: phrases. A comma means OR, a space means AND."""

from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters import unspaced_scripts
from filters.base import Filter, MatchedItem, Role
from filters.error import ParameterError, split_list
from filters.event import Event
from filters.index_keys import Clause, IndexTerms, Key, estimate_rarity, rarest_key
from filters.occurrences import find_occurrences
from filters.tokens import fold

MAX_PHRASES = 400  # of one filter
MAX_PHRASE_BYTES = 60  # of one phrase, in UTF-8

MAX_CANDIDATE_KEYS = 3
"""Number of index keys of a phrase that must be searched in the text. Three leave few false candidates."""
_FULLWIDTH_SIGNS = {"\uff03": "#", "\uff20": "@", "\uff04": "$"}


class Track(Filter):
    """The filter ``track``: events whose text has all terms of one of the phrases, in any order (as in Twitter's API).

    A term without a sign is found in words, hashtags, mentions and parts of links. ``#x`` is found only in hashtags,
    ``@x`` only in mentions, ``$x`` only in cashtags. A term keeps its punctuation, but the words of a text lose the
    punctuation at their ends, so the term ``hello.`` never matches. A term in a script without spaces is found at any
    position (:mod:`filters.unspaced_scripts`).
    """

    __slots__ = ("_phrases", "_single_terms", "_substring_phrases", "_word_phrases")

    name: ClassVar[str] = "track"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "Phrases: a comma is OR, a space is AND; `#x`, `@x`, `$x` match that kind of entity only."

    def __init__(self, phrases: Collection[Clause]) -> None:
        self._phrases = frozenset(phrases)
        searched = [phrase for phrase in phrases if any(map(unspaced_scripts.needs_substring_search, phrase))]
        self._substring_phrases = {
            phrase: frozenset[Key]().union(*map(unspaced_scripts.required_words, phrase)) for phrase in searched
        }
        self._word_phrases = self._phrases - self._substring_phrases.keys()
        self._single_terms = frozenset(term for phrase in self._word_phrases if len(phrase) == 1 for term in phrase)

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls(list(map(_parse_phrase, split_list(value, param="track", max_items=MAX_PHRASES, noun="phrases"))))

    @property
    def canonical_form(self) -> Hashable:
        return self._phrases

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset(map(rarest_key, (*self._word_phrases, *self._substring_phrases.values())))

    def exact_clauses(self) -> Collection[Clause] | None:
        # All pairs of a long term may be in a text without standing together, so they prove nothing.
        return None if self._substring_phrases else self._phrases

    def index_terms(self) -> IndexTerms:
        """Return a clause for each phrase: exact, or a candidate if a term of it must be searched as a substring."""
        searched = self._substring_phrases.values()
        candidates = [frozenset(sorted(keys, key=estimate_rarity)[-MAX_CANDIDATE_KEYS:]) for keys in searched]
        return IndexTerms(self._word_phrases, candidates)

    def matches(self, event: Event) -> bool:
        terms = event.terms
        if not self._single_terms.isdisjoint(terms) or any(phrase <= terms for phrase in self._word_phrases):
            return True
        return any(
            required <= terms and all(map(event.analyzed_text.contains_term, phrase))
            for phrase, required in self._substring_phrases.items()
        )

    def explain(self, event: Event) -> list[MatchedItem]:
        """Return the terms of all matching phrases with their positions in the text, or in a repost's original."""
        analyzed = event.analyzed_text
        terms = {term for phrase in self._phrases if all(map(analyzed.contains_term, phrase)) for term in phrase}
        found = sorted((find_occurrences(analyzed, term), term) for term in terms)
        return [{"filter": "track", "term": term, "indices": [list(span) for span in spans]} for spans, term in found]


def _parse_phrase(text: str) -> Clause:
    # JSON allows a lone surrogate. It is counted like any other character and matches nothing.
    size = len(text.encode(errors="surrogatepass"))
    if not 1 <= size <= MAX_PHRASE_BYTES:
        raise ParameterError(f"a phrase of track must have 1 to {MAX_PHRASE_BYTES} bytes, not {size}", param="track")
    return frozenset(_normalize_sign(fold(word)) for word in text.split())


def _normalize_sign(word: str) -> str:
    return _FULLWIDTH_SIGNS.get(word[0], word[0]) + word[1:]
