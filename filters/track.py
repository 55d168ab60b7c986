"""``track``: phrases; a comma is OR, a blank is AND."""

from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.commas import split
from filters.error import ParameterError
from filters.event import Event
from filters.key import Clause, Key, rarest
from filters.tokens import fold

PHRASES = 400
"""The most phrases of one filter."""

PHRASE_BYTES = 60
"""The most bytes of one phrase, in UTF-8."""

_WIDE_SIGNS = {"\uff03": "#", "\uff20": "@", "\uff04": "$"}


class Track(Filter):
    """Events whose text has all terms of one of the phrases, in any order (Streaming spec, ``track``).

    A bare term is found in words, hashtags, mentions and parts of links; ``#x``, ``@x`` and ``$x`` only in their
    kind of entity. Punctuation in a term belongs to it: ``hello.`` is no word of any text.
    """

    __slots__ = ("_phrases", "_single")

    name: ClassVar[str] = "track"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "Phrases: a comma is OR, a blank is AND; `#x`, `@x`, `$x` match that kind of entity only."

    def __init__(self, phrases: Collection[Clause]) -> None:
        self._phrases = frozenset(phrases)
        self._single = frozenset(term for phrase in self._phrases if len(phrase) == 1 for term in phrase)

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls([_phrase(text) for text in split(value, param="track", most=PHRASES, noun="phrases")])

    @property
    def key(self) -> Hashable:
        return self._phrases

    def keys(self) -> frozenset[Key]:
        return frozenset(map(rarest, self._phrases))

    def clauses(self) -> Collection[Clause]:
        return self._phrases

    def matches(self, event: Event) -> bool:
        terms = event.terms
        return not self._single.isdisjoint(terms) or any(phrase <= terms for phrase in self._phrases)


def _phrase(text: str) -> Clause:
    # A lone surrogate, which JSON can smuggle in, is counted like any other character and matches nothing.
    size = len(text.encode(errors="surrogatepass"))
    if not 1 <= size <= PHRASE_BYTES:
        raise ParameterError(f"a phrase of track has 1 to {PHRASE_BYTES} bytes, not {size}", param="track")
    return frozenset(_term(fold(word)) for word in text.split())


def _term(word: str) -> str:
    return _WIDE_SIGNS.get(word[0], word[0]) + word[1:]
