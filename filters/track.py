"""``track``: phrases; a comma is OR, a blank is AND."""

from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters import unspaced
from filters.base import Filter, Mark, Role
from filters.commas import split
from filters.error import ParameterError
from filters.event import Event
from filters.key import Clause, Key, Leads, rarest, rarity
from filters.occurrence import occurrences
from filters.tokens import fold

PHRASES = 400
"""The most phrases of one filter."""

PHRASE_BYTES = 60
"""The most bytes of one phrase, in UTF-8."""

HINTS = 3
"""So many keys are looked for of a phrase that must be looked for in the text itself: few paths, few false ones."""

_WIDE_SIGNS = {"\uff03": "#", "\uff20": "@", "\uff04": "$"}


class Track(Filter):
    """Events whose text has all terms of one of the phrases, in any order (Streaming spec, ``track``).

    A bare term is found in words, hashtags, mentions and parts of links; ``#x``, ``@x`` and ``$x`` only in their
    kind of entity. Punctuation in a term belongs to it: ``hello.`` is no word of any text. A term of a script without
    blanks is found wherever it stands (:mod:`filters.unspaced`).
    """

    __slots__ = ("_exact", "_long", "_phrases", "_single")

    name: ClassVar[str] = "track"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "Phrases: a comma is OR, a blank is AND; `#x`, `@x`, `$x` match that kind of entity only."

    def __init__(self, phrases: Collection[Clause]) -> None:
        self._phrases = frozenset(phrases)
        self._long = {phrase: _needed(phrase) for phrase in self._phrases if any(map(unspaced.is_long, phrase))}
        self._exact = self._phrases - self._long.keys()
        self._single = frozenset(term for phrase in self._exact if len(phrase) == 1 for term in phrase)

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls([_phrase(text) for text in split(value, param="track", most=PHRASES, noun="phrases")])

    @property
    def key(self) -> Hashable:
        return self._phrases

    def keys(self) -> frozenset[Key]:
        return frozenset(map(rarest, (*self._exact, *self._long.values())))

    def clauses(self) -> Collection[Clause] | None:
        # That all pairs of a long term are there does not say that they stand together.
        return None if self._long else self._phrases

    def leads(self) -> Leads:
        """A phrase of words is proof; of one with a long term, its rarest keys lead to where it is looked for."""
        hints = (sorted(needed, key=rarity)[-HINTS:] for needed in self._long.values())
        return Leads(self._exact, list(map(frozenset, hints)))

    def matches(self, event: Event) -> bool:
        terms = event.terms
        if not self._single.isdisjoint(terms) or any(phrase <= terms for phrase in self._exact):
            return True
        return any(needed <= terms and all(map(event.said.has, phrase)) for phrase, needed in self._long.items())

    def explain(self, event: Event) -> list[Mark]:
        """Each term of each phrase that matched, with all its places in the text, which a repost has from another."""
        said = event.said
        terms = {term for phrase in self._phrases if all(map(said.has, phrase)) for term in phrase}
        found = sorted((occurrences(said, term), term) for term in terms)
        return [
            {"filter": "track", "term": term, "indices": [list(place) for place in places]} for places, term in found
        ]


def _phrase(text: str) -> Clause:
    # A lone surrogate, which JSON can smuggle in, is counted like any other character and matches nothing.
    size = len(text.encode(errors="surrogatepass"))
    if not 1 <= size <= PHRASE_BYTES:
        raise ParameterError(f"a phrase of track has 1 to {PHRASE_BYTES} bytes, not {size}", param="track")
    return frozenset(_term(fold(word)) for word in text.split())


def _needed(phrase: Clause) -> Clause:
    return frozenset[Key]().union(*map(unspaced.needed, phrase))


def _term(word: str) -> str:
    return _WIDE_SIGNS.get(word[0], word[0]) + word[1:]
