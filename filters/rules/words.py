"""Operators that look at words: in the text of a status, in what it quotes, in its links and its author's bio."""

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
"""The most words by which those of ``"…"~N`` may lie apart."""

MAX_PROXIMITY_WORDS = 10
"""The most words of ``"…"~N``, so that no text makes it slow."""

_WORD = re.compile(rf"\w[{WORD_CHARACTERS}]*")
_SIGNS = {"#": "#", "\uff03": "#", "@": "@", "\uff20": "@", "$": "$", "\uff04": "$"}
_ENTITIES = {"#": "hashtag", "@": "mention", "$": "cashtag"}


class TermCondition(Condition):
    """A word, an emoji, or ``#x``, ``@x``, ``$x``: found as a term of ``track`` is, also in what is quoted."""

    __slots__ = ("_required_key",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._required_key = rarest_key(unspaced_scripts.required_words(text))

    def matches(self, event: Event) -> bool:
        return event.analyzed_text.contains_term(self.text) or event.analyzed_quote.contains_term(self.text)

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset((self._required_key, index_keys.quoted_key(self._required_key)))

    def exact_clauses(self) -> Collection[Clause] | None:
        # A longer term in a script without blanks is not proved by what it is looked for by.
        return [frozenset((one,)) for one in self.candidate_keys()] if self._required_key == self.text else None

    def describe(self, event: Event) -> str:
        noun = _ENTITIES.get(self.text[0], "word")
        return _describe_match(
            event,
            f"the {noun} {self.text}",
            here=event.analyzed_text.contains_term(self.text),
            quoted=self.matches(event),
        )

    def indices(self, event: Event) -> list[Indices]:
        return find_occurrences(event.analyzed_text, self.text)


class PhraseCondition(Condition):
    """Words right behind each other, each of them a term of the text; the same of what is quoted."""

    __slots__ = ("_required_words", "words")

    def __init__(self, words: Sequence[str], text: str | None = None) -> None:
        super().__init__(_quote_words(words) if text is None else text)
        self.words = tuple(words)
        self._required_words = frozenset(words)

    def matches(self, event: Event) -> bool:
        return self._is_found_in(event.analyzed_text) or self._is_found_in(event.analyzed_quote)

    def candidate_keys(self) -> frozenset[Key]:
        needed = rarest_key(self._required_words)
        return frozenset((needed, index_keys.quoted_key(needed)))

    def describe(self, event: Event) -> str:
        return _describe_match(
            event, f"the phrase {self.text}", here=self._is_found_in(event.analyzed_text), quoted=self.matches(event)
        )

    def indices(self, event: Event) -> list[Indices]:
        said = event.analyzed_text
        if not self._required_words <= said.terms:
            return []
        where = sequence_spans(said.text)
        return sorted({(where[first][0], where[last][1]) for first, last in self._find_spans(said.word_sequence)})

    def _is_found_in(self, analyzed: AnalyzedText) -> bool:
        return self._required_words <= analyzed.terms and any(self._find_spans(analyzed.word_sequence))

    def _find_spans(self, sequence: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Of each place in the sequence the first and the last word."""
        return _find_sequence(sequence, self.words)


class ProximityCondition(PhraseCondition):
    """The words of a phrase, moved against each other by at most ``distance`` words.

    Two words in their order may have ``distance`` others between them; in the other order, which is a move by two more,
    ``distance`` - 2. No word of the text stands for two of the phrase.
    """

    __slots__ = ("distance",)

    def __init__(self, words: Sequence[str], distance: int) -> None:
        super().__init__(words, f"{_quote_words(words)}~{distance}")
        self.distance = distance

    def _find_spans(self, sequence: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Each word may stand at a start and its place in the phrase, or up to ``distance`` later.

        Places are bits of a number, those before the text as well, so that one step is taken for all starts at once.
        """
        before = len(self.words) + self.distance
        places = dict.fromkeys(self.words, 0)
        for at, word in enumerate(sequence, start=before):
            if word in places:
                places[word] |= 1 << at
        starts = -1
        for nth, word in enumerate(self.words):
            starts &= self._positions_in_reach(places[word] >> nth)
        while starts:
            start = starts & -starts
            starts ^= start
            taken = self._assign_positions(places, start.bit_length() - 1)
            if taken:
                yield (taken & -taken).bit_length() - 1 - before, taken.bit_length() - 1 - before

    def _positions_in_reach(self, places: int) -> int:
        """Where one of ``places`` is, or is up to ``distance`` later."""
        found = places
        for later in range(1, self.distance + 1):
            found |= places >> later
        return found

    def _assign_positions(self, places: Mapping[str, int], start: int) -> int:
        """A place for each word, none for two; 0 where a word finds none."""
        taken, window = 0, (2 << self.distance) - 1
        for at, word in enumerate(self.words, start=start):
            free = places[word] & ~taken & window << at
            if not free:
                return 0
            taken |= free & -free
        return taken


class LinkCondition(Condition):
    """``url:`` — parts of a link that follow one another."""

    __slots__ = ("words",)

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__("url:" + _format_words(words))
        self.words = tuple(words)

    def matches(self, event: Event) -> bool:
        return self._is_found_in(event.analyzed_text) or self._is_found_in(event.analyzed_quote)

    def candidate_keys(self) -> frozenset[Key]:
        needed = rarest_key(self.words)
        return frozenset((needed, index_keys.quoted_key(needed)))

    def describe(self, event: Event) -> str:
        noun = f"a link with {' '.join(self.words)}"
        return _describe_match(event, noun, here=self._is_found_in(event.analyzed_text), quoted=self.matches(event))

    def indices(self, event: Event) -> list[Indices]:
        return [url.indices for url in event.entities.urls if self._matches_link(url.expanded_url, url.display_url)]

    def _is_found_in(self, analyzed: AnalyzedText) -> bool:
        return any(self._matches_link(url.expanded_url, url.display_url) for url in analyzed.entities.urls)

    def _matches_link(self, *links: str) -> bool:
        # A link that is shown shortened would yield half words.
        return any(not link.endswith("…") and any(_find_sequence(_link_words(link), self.words)) for link in links)


class BioCondition(Condition):
    """``bio:`` — words that follow one another in what the author said of themselves when it was posted."""

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
            return "nothing is known of what the author says of themselves"
        return f"the author's bio {'has' if self.matches(event) else 'does not have'} {' '.join(self.words)}"


def parse_keyword(value: OperatorValue) -> Condition:
    """A bare word, or with a sign an entity; raises RuleError for what is several words, or none."""
    folded = fold(value.text)
    if folded[0] in _SIGNS:
        return _parse_entity(value)
    _check_word(value)
    if value.text == "AND":
        raise RuleError("a blank says AND", column=value.column, expected='an operator, or "and" in quotes')
    return TermCondition(folded)


def parse_phrase(value: OperatorValue, distance: str | None = None) -> Condition:
    """What stands in quotes, with N of ``~N``; raises RuleError."""
    words = _parse_words(value)
    if distance is None:
        return PhraseCondition(words)
    if not re.fullmatch(rf"[1-{MAX_DISTANCE}]", distance):
        raise RuleError(
            f"~{distance[:40]} says no distance",
            column=value.column,
            expected=f"a number from 1 to {MAX_DISTANCE} behind the ~",
        )
    if not 2 <= len(words) <= MAX_PROXIMITY_WORDS:
        raise RuleError(
            f"{len(words)} words cannot be near each other",
            column=value.column,
            expected=f"2 to {MAX_PROXIMITY_WORDS} words in the quotes before the ~",
        )
    return ProximityCondition(words, int(distance))


def parse_link(value: OperatorValue) -> Condition:
    """``url:``; raises RuleError."""
    words = _link_words(value.text)
    if not words:
        raise RuleError("url: has no word", column=value.column, expected="a part of a link")
    if not value.quoted:
        _check_word(value)
    return LinkCondition(words)


def parse_bio(value: OperatorValue) -> Condition:
    """``bio:``; raises RuleError."""
    if not value.quoted:
        _check_word(value)
    return BioCondition(_parse_words(value))


def _parse_entity(written: OperatorValue) -> Condition:
    sign = _SIGNS[written.text[0]]
    noun = _ENTITIES[sign]
    found = extract_entities(sign + written.text[1:])
    for name, span in (
        *((tag.text, tag.indices) for tag in found.hashtags),
        *((mention.login, mention.indices) for mention in found.mentions),
        *((tag.text, tag.indices) for tag in found.cashtags),
    ):
        if span == (0, len(written.text)):
            return TermCondition(sign + fold(name))
    raise RuleError(f"{written.text[:40]} is no {noun}", column=written.column, expected=f"a {noun} such as {sign}tea")


def _parse_words(written: OperatorValue) -> list[str]:
    words = words_in_order(fold(written.text))
    if not words:
        raise RuleError("there is no word in the quotes", column=written.column, expected="one word or more")
    return words


def _check_word(written: OperatorValue) -> None:
    folded = fold(written.text)
    if _WORD.fullmatch(folded):
        return
    words = words_in_order(folded)
    if not words:
        raise RuleError("there is no word in it", column=written.column, expected="a word")
    if words != [folded]:
        shown = f"{written.text[:40]}{'…' * (len(written.text) > 40)}"
        quoted = quote_value(shown)
        raise RuleError(f"{shown} is not one word", column=written.column, expected=f"quotes around it: {quoted}")


def _format_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else _quote_words(words)


def _quote_words(words: Sequence[str]) -> str:
    """The words with blanks between them, but for those of a script that has none."""
    shown = words[0]
    for before, word in pairwise(words):
        shown += word if unspaced_scripts.has_unspaced(before) and unspaced_scripts.has_unspaced(word) else f" {word}"
    return f'"{shown}"'


def _find_sequence(sequence: Sequence[str], words: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Where ``words`` stand in ``sequence`` right behind each other: the first and the last of them, each time."""
    at = -1
    for _ in range(sequence.count(words[0])):
        at = sequence.index(words[0], at + 1)
        if sequence[at : at + len(words)] == words:
            yield at, at + len(words) - 1


@lru_cache(maxsize=1024)
def _link_words(link: str) -> tuple[str, ...]:
    """Without emoji, which are no words of a link."""
    return tuple(word for word in words_in_order(fold(to_display_url(link))) if _WORD.match(word))


def _describe_match(event: Event, what: str, *, here: bool, quoted: bool) -> str:
    if here:
        return f"the text has {what}"
    if quoted:
        return f"the quoted text has {what}"
    either = "neither the text nor the quoted text has" if event.analyzed_quote.text else "the text does not have"
    return f"{either} {what}"
