"""The filter ``track``: phrases. A comma means OR, a space means AND."""

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
"""Maximum number of phrases of one filter."""

MAX_PHRASE_BYTES = 60
"""Maximum length of one phrase in bytes of UTF-8."""

MAX_CANDIDATE_KEYS = 3
"""Maximum number of index keys of a phrase that must be searched in the text itself.

Few keys keep the trie small, and three of them leave few false candidates.
"""

_FULLWIDTH_SIGNS = {"\uff03": "#", "\uff20": "@", "\uff04": "$"}


class Track(Filter):
    """Events whose text has all terms of one of the phrases, in any order (Twitter's Streaming API, ``track``).

    A bare term is found in words, hashtags, mentions and parts of links. ``#x``, ``@x`` and ``$x`` are found only in
    that kind of entity. Punctuation in a term is part of it, so ``hello_message.`` never matches. A term in a script
    without spaces is found at any position (:mod:`filters.unspaced_scripts`).
    """

    __slots__ = ("_phrases", "_single_terms", "_substring_phrases", "_word_phrases")

    name: ClassVar[str] = "track"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "Phrases: a comma is OR, a space is AND; `#x`, `@x`, `$x` match that kind of entity only."

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
        # All pairs of a long term may be in a text without standing together, so they prove nothing.
        return None if self._substring_phrases else self._phrases

    def index_terms(self) -> IndexTerms:
        """Return the phrases of words as exact clauses, and the rarest keys of each other phrase as a candidate."""
        candidates = (
            sorted(required, key=estimate_rarity)[-MAX_CANDIDATE_KEYS:] for required in self._substring_phrases.values()
        )
        return IndexTerms(self._word_phrases, list(map(frozenset, candidates)))

    def matches(self, event: Event) -> bool:
        terms = event.terms
        if not self._single_terms.isdisjoint(terms) or any(phrase <= terms for phrase in self._word_phrases):
            return True
        return any(
            required <= terms and all(map(event.analyzed_text.contains_term, phrase))
            for phrase, required in self._substring_phrases.items()
        )

    def explain(self, event: Event) -> list[MatchedItem]:
        """Return each term of each phrase that matched, with all its positions in the text.

        The text of a repost is that of the original status.
        """
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


def _required_keys(phrase: Clause) -> Clause:
    return frozenset[Key]().union(*map(unspaced_scripts.required_words, phrase))


def _normalize_sign(word: str) -> str:
    return _FULLWIDTH_SIGNS.get(word[0], word[0]) + word[1:]
