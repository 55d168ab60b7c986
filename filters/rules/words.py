"""Operators for words: in the text of a status, in the text that it quotes, in its links, and in the author's bio."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from filters import index_keys, unspaced_scripts
from filters.analyzed_text import AnalyzedText
from filters.entities import Indices, extract_entities, to_display_url
from filters.event import Event, bio_words
from filters.index_keys import Clause, Key, rarest_key
from filters.occurrences import find_occurrences, sequence_spans
from filters.rules.condition import Condition, OperatorValue, quote_value
from filters.rules.error import RuleError
from filters.tokens import fold, words_in_order
from filters.unicode_classes import WORD_CHARACTERS

MAX_DISTANCE = 6
"""Maximum N of ``"…"~N``."""

MAX_PROXIMITY_WORDS = 10
"""Maximum number of words of ``"…"~N``, so that no text makes it slow."""

_WORD = re.compile(rf"\w[{WORD_CHARACTERS}]*")
_SIGNS = {"#": "#", "\uff03": "#", "@": "@", "\uff20": "@", "$": "$", "\uff04": "$"}
_ENTITIES = {"#": "hashtag", "@": "mention", "$": "cashtag"}


class TermCondition(Condition):
    """A word, an emoji, or an entity ``#x``, ``@x`` or ``$x``.

    It is found like a term of ``track``, in the text of the status and in the text that it quotes.
    """

    __slots__ = ("_required_key",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._required_key = rarest_key(unspaced_scripts.required_words(text))

    def matches(self, event: Event) -> bool:
        return event.analyzed_text.contains_term(self.text) or event.analyzed_quote.contains_term(self.text)

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset((self._required_key, index_keys.quoted_key(self._required_key)))

    def exact_clauses(self) -> Collection[Clause] | None:
        # The keys of a longer term in a script without spaces do not prove that the text contains it.
        return [frozenset((key,)) for key in self.candidate_keys()] if self._required_key == self.text else None

    def describe(self, event: Event) -> str:
        noun = _ENTITIES.get(self.text[0], "word")
        return _describe_match(
            event,
            f"the {noun} {self.text}",
            in_text=event.analyzed_text.contains_term(self.text),
            anywhere=self.matches(event),
        )

    def indices(self, event: Event) -> list[Indices]:
        return find_occurrences(event.analyzed_text, self.text)


class PhraseCondition(Condition):
    """Words that directly follow each other in the text of the status, or in the text that it quotes.

    Each of them must also be a term of this text.
    """

    __slots__ = ("_required_words", "words")

    def __init__(self, words: Sequence[str], text: str | None = None) -> None:
        super().__init__(_quote_words(words) if text is None else text)
        self.words = tuple(words)
        self._required_words = frozenset(words)

    def matches(self, event: Event) -> bool:
        return self._is_found_in(event.analyzed_text) or self._is_found_in(event.analyzed_quote)

    def candidate_keys(self) -> frozenset[Key]:
        required = rarest_key(self._required_words)
        return frozenset((required, index_keys.quoted_key(required)))

    def describe(self, event: Event) -> str:
        return _describe_match(
            event,
            f"the phrase {self.text}",
            in_text=self._is_found_in(event.analyzed_text),
            anywhere=self.matches(event),
        )

    def indices(self, event: Event) -> list[Indices]:
        analyzed = event.analyzed_text
        if not self._required_words <= analyzed.terms:
            return []
        spans = sequence_spans(analyzed.text)
        return sorted({(spans[first][0], spans[last][1]) for first, last in self._find_spans(analyzed.word_sequence)})

    def _is_found_in(self, analyzed: AnalyzedText) -> bool:
        return self._required_words <= analyzed.terms and any(self._find_spans(analyzed.word_sequence))

    def _find_spans(self, sequence: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Return the first and the last word of each occurrence of the phrase in the sequence."""
        return _find_sequence(sequence, self.words)


class ProximityCondition(PhraseCondition):
    """The words of a phrase near each other: each word is moved by at most ``distance`` words.

    Two words in the given order may have up to ``distance`` other words between them. In the reverse order they may
    have up to ``distance`` - 2, because reversing is a move by two. Each word of the phrase needs its own word of the
    text.
    """

    __slots__ = ("distance",)

    def __init__(self, words: Sequence[str], distance: int) -> None:
        super().__init__(words, f"{_quote_words(words)}~{distance}")
        self.distance = distance

    def _find_spans(self, sequence: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Return the first and the last word of each occurrence in the sequence.

        For some start, each word must stand at its position in the phrase or up to ``distance`` later. Positions are
        bits of an integer, so that all starts are checked in one step. Starts before the text are included.
        """
        before = len(self.words) + self.distance
        positions = dict.fromkeys(self.words, 0)
        for at, word in enumerate(sequence, start=before):
            if word in positions:
                positions[word] |= 1 << at
        starts = -1
        for nth, word in enumerate(self.words):
            starts &= self._positions_in_reach(positions[word] >> nth)
        while starts:
            start = starts & -starts
            starts ^= start
            used = self._assign_positions(positions, start.bit_length() - 1)
            if used:
                yield (used & -used).bit_length() - 1 - before, used.bit_length() - 1 - before

    def _positions_in_reach(self, positions: int) -> int:
        """Return the positions from which one of ``positions`` is at most ``distance`` words later."""
        found = positions
        for later in range(1, self.distance + 1):
            found |= positions >> later
        return found

    def _assign_positions(self, positions: Mapping[str, int], start: int) -> int:
        """Return a different position for each word, as bits, or 0 if some word has no free position."""
        used, window = 0, (2 << self.distance) - 1
        for at, word in enumerate(self.words, start=start):
            free = positions[word] & ~used & window << at
            if not free:
                return 0
            used |= free & -free
        return used


class LinkCondition(Condition):
    """The operator ``url:``. Parts of a link that directly follow each other."""

    __slots__ = ("words",)

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__("url:" + _format_words(words))
        self.words = tuple(words)

    def matches(self, event: Event) -> bool:
        return self._is_found_in(event.analyzed_text) or self._is_found_in(event.analyzed_quote)

    def candidate_keys(self) -> frozenset[Key]:
        required = rarest_key(self.words)
        return frozenset((required, index_keys.quoted_key(required)))

    def describe(self, event: Event) -> str:
        noun = f"a link with {' '.join(self.words)}"
        return _describe_match(
            event, noun, in_text=self._is_found_in(event.analyzed_text), anywhere=self.matches(event)
        )

    def indices(self, event: Event) -> list[Indices]:
        return [url.indices for url in event.entities.urls if self._matches_link(url.expanded_url, url.display_url)]

    def _is_found_in(self, analyzed: AnalyzedText) -> bool:
        return any(self._matches_link(url.expanded_url, url.display_url) for url in analyzed.entities.urls)

    def _matches_link(self, *links: str) -> bool:
        # A display form that is cut off would yield parts of words.
        return any(not link.endswith("…") and any(_find_sequence(_link_words(link), self.words)) for link in links)


class BioCondition(Condition):
    """The operator ``bio:``. Words that directly follow each other in the author's bio when the status was posted."""

    __slots__ = ("words",)

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__("bio:" + _format_words(words))
        self.words = tuple(words)

    def matches(self, event: Event) -> bool:
        return bool(event.bio) and any(_find_sequence(bio_words(event.bio), self.words))

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset((index_keys.bio_key(rarest_key(self.words)),))

    def describe(self, event: Event) -> str:
        if not event.bio:
            return "the author has no bio"
        return f"the author's bio {'has' if self.matches(event) else 'does not have'} {' '.join(self.words)}"


def parse_keyword(value: OperatorValue) -> Condition:
    """Parse a bare word, or an entity with its sign. Raises RuleError unless it is exactly one word."""
    folded = fold(value.text)
    if folded[0] in _SIGNS:
        return _parse_entity(value)
    _check_word(value)
    if value.text == "AND":
        raise RuleError("a space means AND", column=value.column, expected='an operator, or "and" in quotes')
    return TermCondition(folded)


def parse_phrase(value: OperatorValue, distance: str | None = None) -> Condition:
    """Parse a phrase in quotes. ``distance`` is the N of ``~N``, or None. Raises RuleError."""
    words = _parse_words(value)
    if distance is None:
        return PhraseCondition(words)
    if not re.fullmatch(rf"[1-{MAX_DISTANCE}]", distance):
        raise RuleError(
            f"~{distance[:40]} is not a valid distance",
            column=value.column,
            expected=f"a number from 1 to {MAX_DISTANCE} behind the ~",
        )
    if not 2 <= len(words) <= MAX_PROXIMITY_WORDS:
        raise RuleError(
            f"~ cannot be used with {len(words)} words",
            column=value.column,
            expected=f"2 to {MAX_PROXIMITY_WORDS} words in the quotes before the ~",
        )
    return ProximityCondition(words, int(distance))


def parse_link(value: OperatorValue) -> Condition:
    """Parse the value of ``url:``. Raises RuleError."""
    words = _link_words(value.text)
    if not words:
        raise RuleError("url: has no word", column=value.column, expected="a part of a link")
    if not value.quoted:
        _check_word(value)
    return LinkCondition(words)


def parse_bio(value: OperatorValue) -> Condition:
    """Parse the value of ``bio:``. Raises RuleError."""
    if not value.quoted:
        _check_word(value)
    return BioCondition(_parse_words(value))


def _parse_entity(value: OperatorValue) -> Condition:
    sign = _SIGNS[value.text[0]]
    noun = _ENTITIES[sign]
    found = extract_entities(sign + value.text[1:])
    for name, span in (
        *((tag.text, tag.indices) for tag in found.hashtags),
        *((mention.login, mention.indices) for mention in found.mentions),
        *((tag.text, tag.indices) for tag in found.cashtags),
    ):
        if span == (0, len(value.text)):
            return TermCondition(sign + fold(name))
    raise RuleError(f"{value.text[:40]} is not a {noun}", column=value.column, expected=f"a {noun} such as {sign}tea")


def _parse_words(value: OperatorValue) -> list[str]:
    words = words_in_order(fold(value.text))
    if not words:
        raise RuleError("the quotes contain no word", column=value.column, expected="one word or more")
    return words


def _check_word(value: OperatorValue) -> None:
    folded = fold(value.text)
    if _WORD.fullmatch(folded):
        return
    words = words_in_order(folded)
    if not words:
        raise RuleError("the value contains no word", column=value.column, expected="a word")
    if words != [folded]:
        shown = f"{value.text[:40]}{'…' * (len(value.text) > 40)}"
        quoted = quote_value(shown)
        raise RuleError(f"{shown} is not one word", column=value.column, expected=f"quotes around it: {quoted}")


def _format_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else _quote_words(words)


def _quote_words(words: Sequence[str]) -> str:
    """Return the words in quotes, joined by spaces. Neighbours in scripts without spaces are joined without a space."""
    shown = words[0]
    for before, word in pairwise(words):
        shown += word if unspaced_scripts.has_unspaced(before) and unspaced_scripts.has_unspaced(word) else f" {word}"
    return f'"{shown}"'


def _find_sequence(sequence: Sequence[str], words: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Return the first and the last index of each place where ``words`` directly follow each other in ``sequence``."""
    at = -1
    for _ in range(sequence.count(words[0])):
        at = sequence.index(words[0], at + 1)
        if sequence[at : at + len(words)] == words:
            yield at, at + len(words) - 1


@lru_cache(maxsize=1024)
def _link_words(link: str) -> tuple[str, ...]:
    """Return the words of a link in order. Emoji are left out, because they are not words of a link."""
    return tuple(word for word in words_in_order(fold(to_display_url(link))) if _WORD.match(word))


def _describe_match(event: Event, noun: str, *, in_text: bool, anywhere: bool) -> str:
    if in_text:
        return f"the text has {noun}"
    if anywhere:
        return f"the quoted text has {noun}"
    subject = "neither the text nor the quoted text has" if event.analyzed_quote.text else "the text does not have"
    return f"{subject} {noun}"
