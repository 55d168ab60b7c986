"""Operators for words: in the text of a status, in the text that it quotes, in its links, and in the author's bio."""

import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from filters import index_keys, unspaced_scripts
from filters.analyzed_text import AnalyzedText, join_words, words_of_link
from filters.entities import Indices, extract_entities
from filters.event import Event, joined_bio_words
from filters.index_keys import Clause, Key, rarest_key
from filters.occurrences import find_occurrences, sequence_spans
from filters.rules.condition import Condition, OperatorValue, quote_value
from filters.tokens import fold, words_in_order
from filters.unicode_classes import WORD_CHARACTERS

MAX_DISTANCE = 6  # maximum N of ``"…"~N``
MAX_PROXIMITY_WORDS = 10  # maximum number of words of ``"…"~N``, so that no text makes it slow

_WORD = re.compile(rf"\w[{WORD_CHARACTERS}]*")
_SIGNS = {"#": "#", "\uff03": "#", "@": "@", "\uff20": "@", "$": "$", "\uff04": "$"}
_ENTITIES = {"#": "hashtag", "@": "mention", "$": "cashtag"}


class TextCondition(Condition):
    """The base class of rule operators that search the text of a status and the text that the status quotes."""

    __slots__ = ("_required_key",)

    def __init__(self, text: str, required: Iterable[Key]) -> None:
        super().__init__(text)
        self._required_key = rarest_key(required)

    @abstractmethod
    def noun(self) -> str:
        """Return a phrase for explanations that says what the operator finds, such as ``the word tea``."""

    @abstractmethod
    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        """Whether ``analyzed``, the text of a status or the text that it quotes, has what the operator looks for."""

    def matches(self, event: Event) -> bool:
        return self.is_found_in(event.analyzed_text) or self.is_found_in(event.analyzed_quote)

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset((self._required_key, index_keys.QUOTED + self._required_key))

    def describe(self, event: Event) -> str:
        if self.is_found_in(event.analyzed_text):
            return f"the text has {self.noun()}"
        if self.is_found_in(event.analyzed_quote):
            return f"the quoted text has {self.noun()}"
        subject = "neither the text nor the quoted text has" if event.analyzed_quote.text else "the text does not have"
        return f"{subject} {self.noun()}"


class TermCondition(TextCondition):
    """The rule operator for a word, emoji or entity (``#x``, ``@x``, ``$x``). It finds what ``track`` would find."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        super().__init__(text, unspaced_scripts.required_words(text))

    def noun(self) -> str:
        return f"the {_ENTITIES.get(self.text[0], 'word')} {self.text}"

    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        return analyzed.contains_term(self.text)

    def matches(self, event: Event) -> bool:  # the most frequent condition, so without the calls of the base class
        return event.analyzed_text.contains_term(self.text) or event.analyzed_quote.contains_term(self.text)

    def exact_clauses(self) -> Collection[Clause] | None:
        # The keys of a longer term in a script without spaces do not prove that the text contains it.
        return [frozenset((key,)) for key in self.candidate_keys()] if self._required_key == self.text else None

    def indices(self, event: Event) -> list[Indices]:
        return find_occurrences(event.analyzed_text, self.text)


class PhraseCondition(TextCondition):
    """The rule operator ``"words"``: words directly after each other, each of which ``track`` would find too."""

    __slots__ = ("_joined", "_required_words", "words")

    def __init__(self, words: Sequence[str], suffix: str = "") -> None:
        super().__init__(_quote_words(words) + suffix, words)
        self.words = tuple(words)
        self._joined = join_words(words)
        self._required_words = frozenset(words)

    def noun(self) -> str:
        return f"the phrase {self.text}"

    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        return self._required_words <= analyzed.terms and self._joined in analyzed.joined_words

    def indices(self, event: Event) -> list[Indices]:
        analyzed = event.analyzed_text
        if not self._required_words <= analyzed.terms:
            return []
        spans = sequence_spans(analyzed.text)
        return sorted({(spans[first][0], spans[last][1]) for first, last in self._find_spans(analyzed.word_sequence)})

    def _find_spans(self, sequence: Sequence[str]) -> Iterator[tuple[int, int]]:
        return _find_sequence(sequence, self.words)


class ProximityCondition(PhraseCondition):
    """The rule operator ``"words"~N``: the words near each other in the text. ``distance`` is N.

    Each word may stand up to N words after its place in the phrase. So up to N other words may stand between two words
    in the given order. In the reverse order up to N - 2 may, because swapping two words moves one by two places. If the
    phrase has a word twice, the text must have it twice.
    """

    __slots__ = ("distance",)

    def __init__(self, words: Sequence[str], distance: int) -> None:
        super().__init__(words, f"~{distance}")
        self.distance = distance

    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        return self._required_words <= analyzed.terms and any(self._find_spans(analyzed.word_sequence))

    def _find_spans(self, sequence: Sequence[str]) -> Iterator[tuple[int, int]]:
        # For some start, each word must stand at its position in the phrase or up to ``distance`` later. Positions are
        # bits of an integer, so that all starts are checked in one step. Starts before the text are included.
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
        """Return a bit set: each position of the bit set ``positions``, and the ``distance`` positions before each."""
        found = positions
        for later in range(1, self.distance + 1):
            found |= positions >> later
        return found

    def _assign_positions(self, positions: Mapping[str, int], start: int) -> int:
        """Find a different word of the text for each word of a phrase whose first word is expected at ``start``.

        A word may stand up to ``distance`` words after its place in the phrase. Returns a bit set of the word positions
        in the text that were taken, or 0 if a word of the phrase finds no free one.
        """
        used, window = 0, (2 << self.distance) - 1
        for at, word in enumerate(self.words, start=start):
            free = positions[word] & ~used & window << at
            if not free:
                return 0
            used |= free & -free
        return used


class LinkCondition(TextCondition):
    """The rule operator ``url:``: a link in the text has the words of the value directly after each other."""

    __slots__ = ("_joined", "words")

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__("url:" + _format_words(words), words)
        self.words = tuple(words)
        self._joined = join_words(words)

    def noun(self) -> str:
        return f"a link with {' '.join(self.words)}"

    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        return self._joined in analyzed.joined_links

    def indices(self, event: Event) -> list[Indices]:
        analyzed = event.analyzed_text
        links = zip(analyzed.entities.urls, analyzed.link_words, strict=True)
        return [url.indices for url, forms in links if any(self._joined in form for form in forms)]


class BioCondition(Condition):
    """The rule operator ``bio:``: words directly after each other in the author's bio when the status was posted."""

    __slots__ = ("_joined", "words")

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__("bio:" + _format_words(words))
        self.words = tuple(words)
        self._joined = join_words(words)

    def matches(self, event: Event) -> bool:
        return bool(event.bio) and self._joined in joined_bio_words(event.bio)

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset((index_keys.BIO + rarest_key(self.words),))

    def describe(self, event: Event) -> str:
        if not event.bio:
            return "the author has no bio"
        return f"the author's bio {'has' if self.matches(event) else 'does not have'} {' '.join(self.words)}"


def parse_keyword(value: OperatorValue) -> Condition:
    """Return the condition of a word, hashtag, mention or cashtag in a rule. Raises RuleError for anything else."""
    folded = fold(value.text)
    if folded[0] in _SIGNS:
        return _parse_entity(value)
    _check_word(value)
    if value.text == "AND":
        raise value.refusal("a space means AND", 'an operator, or "and" in quotes')
    return TermCondition(folded)


def parse_phrase(value: OperatorValue, distance: str | None = None) -> Condition:
    """Return the condition of ``"words"`` or, with N as ``distance``, of ``"words"~N``. Raises RuleError if invalid."""
    words = _parse_words(value)
    if distance is None:
        return PhraseCondition(words)
    if not re.fullmatch(rf"[1-{MAX_DISTANCE}]", distance):
        expected = f"a number from 1 to {MAX_DISTANCE} behind the ~"
        raise value.refusal(f"~{distance[:40]} is not a valid distance", expected)
    if not 2 <= len(words) <= MAX_PROXIMITY_WORDS:
        expected = f"2 to {MAX_PROXIMITY_WORDS} words in the quotes before the ~"
        raise value.refusal(f"~ cannot be used with {len(words)} words", expected)
    return ProximityCondition(words, int(distance))


def parse_link(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``url:``. Raises RuleError if the value has no word."""
    words = words_of_link(value.text)
    if not words:
        raise value.refusal("url: has no word", "a part of a link")
    if not value.quoted:
        _check_word(value)
    return LinkCondition(words)


def parse_bio(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``bio:``. Raises RuleError if the value has no word."""
    if not value.quoted:
        _check_word(value)
    return BioCondition(_parse_words(value))


def _parse_entity(value: OperatorValue) -> Condition:
    sign = _SIGNS[value.text[0]]
    noun = _ENTITIES[sign]
    found = extract_entities(sign + value.text[1:])
    for name, span in (*found.hashtags, *found.mentions, *found.cashtags):
        if span == (0, len(value.text)):
            return TermCondition(sign + fold(name))
    raise value.refusal(f"{value.text[:40]} is not a {noun}", f"a {noun} such as {sign}tea")


def _parse_words(value: OperatorValue) -> list[str]:
    words = words_in_order(fold(value.text))
    if not words:
        raise value.refusal("the quotes contain no word", "one word or more")
    return words


def _check_word(value: OperatorValue) -> None:
    folded = fold(value.text)
    if _WORD.fullmatch(folded):
        return
    words = words_in_order(folded)
    if not words:
        raise value.refusal("the value contains no word", "a word")
    if words != [folded]:
        shown = f"{value.text[:40]}{'…' * (len(value.text) > 40)}"
        quoted = quote_value(shown)
        raise value.refusal(f"{shown} is not one word", f"quotes around it: {quoted}")


def _format_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else _quote_words(words)


def _quote_words(words: Sequence[str]) -> str:
    """Return the words as one quoted text, with a space between two words unless both are in scripts without spaces."""
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
