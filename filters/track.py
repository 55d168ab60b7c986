"""The filter ``track``: phrases. A comma means OR, a space means AND."""

import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self

from filters.analyzed_text import AnalyzedText, find_occurrences
from filters.base import Filter, MatchedItem, Role, split_list
from filters.entities import extract_entities
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Clause, IndexTerms, estimate_rarity
from filters.inverted_lists import MAX_TUPLE_ITEMS
from filters.invisible import drop_invisible
from filters.term_search import SearchedTerm, searched_term
from filters.tokens import fold

MAX_PHRASES = 400  # of one filter
MAX_PHRASE_BYTES = 60  # of one phrase, in UTF-8

_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_PLAIN_PHRASES = re.compile(r"[A-Za-z0-9_, ]+")
_IN_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")
"""Control characters that are no white space, and lone surrogates: no text has them."""


class _SearchedPhrase(NamedTuple):
    """A phrase of which at least one term must be searched for in the text (``searched``).

    ``required`` are index keys that each text with the phrase has.
    """

    required: Clause
    searched: tuple[SearchedTerm, ...]

    def is_in(self, analyzed: AnalyzedText) -> bool:
        if not self.required <= analyzed.terms:
            return False
        for term in self.searched:  # noqa: SIM110 - a generator takes longer
            if not analyzed.contains_searched(term):
                return False
        return True


_NONE_SEARCHED: Mapping[Clause, _SearchedPhrase] = MappingProxyType({})


class Track(Filter):
    """The filter ``track``: events whose text has all terms of one of the phrases, in any order (as in Twitter's API).

    A term without a sign is found in words, hashtags, mentions and parts of links. ``#x`` is found only in hashtags,
    ``@x`` only in mentions, ``$x`` only in cashtags. A term with punctuation is found where the text has the same
    characters and no letter or digit beside them (:mod:`filters.term_search`). A term in a script without spaces is
    found at any position (:mod:`filters.tokens`). A phrase needs a letter, digit or emoji.

    Attributes:
        unmatchable_terms: The terms, and the phrases without a word, that can match no text.
    """

    __slots__ = ("_phrases", "_searched_phrases", "_words", "canonical_form", "unmatchable_terms")

    name: ClassVar[str] = "track"
    role: ClassVar[Role] = "combinable"
    canonical_form: tuple[str, ...]
    help: ClassVar[str] = "Phrases: a comma is OR, a space is AND; `#x`, `@x`, `$x` match that kind of entity only."

    def __init__(
        self, phrases: Collection[Clause], unmatchable: Collection[str] = (), *, are_plain: bool = False
    ) -> None:
        """``are_plain`` says that all phrases consist of plain words, of which none must be searched in a text.

        Most filters have one word. It stands in the canonical form, and everything else that is kept is empty: a set
        of one word would take 216 bytes.
        """
        self.unmatchable_terms = tuple(unmatchable)
        by_text = {" ".join(sorted(phrase)): phrase for phrase in phrases}
        self.canonical_form = tuple(sorted(by_text))
        searched = {} if are_plain else {
            phrase: found
            for text, phrase in by_text.items()
            if not _PLAIN_PHRASES.fullmatch(text) and (found := _searched_phrase(phrase)) is not None
        }  # fmt: skip
        self._searched_phrases = searched or _NONE_SEARCHED
        plain = {text: phrase for text, phrase in by_text.items() if phrase not in searched} if searched else by_text
        self._phrases = tuple([phrase for text, phrase in plain.items() if " " in text])
        if not self._phrases and len(plain) == len(by_text) <= MAX_TUPLE_ITEMS:
            self._words: Collection[str] = self.canonical_form
        else:
            words = [text for text in plain if " " not in text]
            self._words = frozenset(words) if words else ()

    @classmethod
    def parse(cls, value: str) -> Self:
        texts = split_list(value, param="track", max_items=MAX_PHRASES, noun="phrases")
        are_plain = _PLAIN_PHRASES.fullmatch(value) is not None
        if not are_plain and (found := _IN_NO_TEXT.search(value)):
            message = f"track must not contain U+{ord(found.group()):04X}, which no text has"
            raise ParameterError(message, param="track")
        for text in texts:
            if not 1 <= (size := len(text.encode())) <= MAX_PHRASE_BYTES:
                hint = "" if size else "; in a URL, a `#` is written as %23"
                message = f"a phrase of track must have 1 to {MAX_PHRASE_BYTES} bytes, not {size}{hint}"
                raise ParameterError(message, param="track")
        if are_plain:
            return cls([frozenset(fold(text).split()) for text in texts], are_plain=True)
        phrases = [frozenset(map(fold, _split(text))) for text in texts]
        unmatchable = {term for text in texts for term in _split(text) if _is_unmatchable(term)}
        for text, phrase in zip(texts, phrases, strict=True):
            if not _has_word(phrase):
                shown, is_visible = text.strip(), drop_invisible(text).strip()
                unmatchable.add(shown if is_visible else " ".join(f"U+{ord(character):04X}" for character in shown))
        return cls([phrase for phrase in phrases if phrase], sorted(unmatchable))

    def index_terms(self) -> IndexTerms:
        """Return an exact clause for each phrase of words and entities, and a candidate clause for each other phrase.

        A text may have all words of a term with punctuation, but not the term itself. So these words prove nothing.
        A phrase whose searched terms begin and end with words has an exact clause too. Most texts with the phrase have
        these terms as index keys (:func:`filters.tokens.compounds`).
        """
        exact = [frozenset((word,)) for word in self._words]
        exact += self._phrases
        if not self._searched_phrases:
            return IndexTerms(exact)
        candidates: list[Clause] = []
        for phrase, found in self._searched_phrases.items():
            # Three keys leave few false candidates.
            candidates.append(frozenset(sorted(found.required, key=estimate_rarity)[-3:]))
            if all(term.marked and not term.begins_with_mark and not term.ends_with_mark for term in found.searched):
                exact.append(phrase)
        return IndexTerms(exact, candidates)

    def matches(self, event: Event) -> bool:
        terms = event.terms
        if not terms.isdisjoint(self._words) or (self._phrases and any(phrase <= terms for phrase in self._phrases)):
            return True
        analyzed = event.analyzed_text
        for found in self._searched_phrases.values():  # noqa: SIM110 - a generator takes longer
            if found.is_in(analyzed):
                return True
        return False

    def explain(self, event: Event) -> list[MatchedItem]:
        """Return the terms of all matching phrases with their positions in the text, or in a repost's original."""
        analyzed = event.analyzed_text
        matching = [frozenset(analyzed.terms.intersection(self._words))]
        matching += [phrase for phrase in self._phrases if phrase <= analyzed.terms]
        matching += [phrase for phrase, found in self._searched_phrases.items() if found.is_in(analyzed)]
        terms = frozenset[str]().union(*matching)
        found = sorted((find_occurrences(analyzed, term), term) for term in terms)
        return [{"filter": "track", "term": term, "indices": [list(span) for span in spans]} for spans, term in found]


def _searched_phrase(phrase: Clause) -> _SearchedPhrase | None:
    searched = tuple(found for term in phrase if (found := searched_term(term)) is not None)
    if not searched:
        return None
    words = phrase.difference(found.term for found in searched).union(*(found.required for found in searched))
    # Without a word, a phrase has no key by which the index finds it, so it must not match: it is no key of any text.
    return _SearchedPhrase(words or phrase, searched)


def _has_word(phrase: Clause) -> bool:
    return any(
        _PLAIN.fullmatch(term) or (searched := searched_term(term)) is None or searched.required for term in phrase
    )


def _split(phrase: str) -> Iterator[str]:
    """Return the terms of a phrase as written, but without invisible characters. There may be none."""
    return filter(None, map(drop_invisible, phrase.split()))


def _is_unmatchable(term: str) -> bool:
    """Return whether no text can have the term, because its entities are taken out of the text first."""
    if _PLAIN.fullmatch(term):
        return False
    return not AnalyzedText(term, extract_entities(term)).contains_term(fold(term))
