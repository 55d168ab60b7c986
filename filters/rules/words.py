"""Operators for words: in the text of a status, in the text that it quotes, in its links, and in the author's bio."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from filters import index_keys
from filters.analyzed_text import AnalyzedText, find_occurrences
from filters.entities import Indices, extract_entities
from filters.event import Event, bio_words
from filters.index_keys import IndexTerms, Key, rarest_key
from filters.rules.condition import Condition, OperatorValue, quote_value
from filters.tables import LETTERS_AND_DIGITS, WORD_CHARACTERS
from filters.term_search import is_entity, searched_term
from filters.tokens import fold, words_in_order
from filters.word_sequence import WordSequence, sequence_spans

MAX_DISTANCE = 6  # maximum N of ``"…"~N``
MAX_PROXIMITY_WORDS = 10  # maximum number of words of ``"…"~N``, so that no text makes it slow

_WORD = re.compile(f"[{LETTERS_AND_DIGITS}][{WORD_CHARACTERS}]*")
_OTHER_LANGUAGES = {"AND": ("a space means AND", "an operator"), "NOT": ("a minus means NOT", "- before an operator")}
"""Words that are operators in other query languages: what means the same here, and what should stand in their place."""
WORD_OPERATOR_HINT = (
    "search for the word or, and or not: write OR between alternatives, a space for AND, a minus for NOT, "
    "and quotes around a word that is meant"
)
"""What a warning says of rules with a word that is an operator in other query languages."""

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

    def index_terms(self) -> IndexTerms:
        keys = self._required_key, index_keys.QUOTED + self._required_key
        return IndexTerms((), [frozenset((key,)) for key in keys])

    def describe(self, event: Event) -> str:
        if self.is_found_in(event.analyzed_text):
            return f"the text has {self.noun()}"
        if self.is_found_in(event.analyzed_quote):
            return f"the quoted text has {self.noun()}"
        subject = "neither the text nor the quoted text has" if event.analyzed_quote.text else "the text does not have"
        return f"{subject} {self.noun()}"


class TermCondition(TextCondition):
    """The rule operator for a word, emoji or entity (``#x``, ``@x``, ``$x``). It finds what ``track`` would find."""

    __slots__ = ("_searched",)

    def __init__(self, text: str) -> None:
        self._searched = searched_term(text)
        super().__init__(text, (text,) if self._searched is None else self._searched.required)

    def noun(self) -> str:
        return f"the {_ENTITIES[self.text[0]] if is_entity(self.text) else 'word'} {self.text}"

    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        return analyzed.contains_term(self.text)

    def matches(self, event: Event) -> bool:  # the most frequent condition, so without the calls of the base class
        if self._searched is None:
            return self.text in event.analyzed_text.terms or self.text in event.analyzed_quote.terms
        return self.is_found_in(event.analyzed_text) or self.is_found_in(event.analyzed_quote)

    def index_terms(self) -> IndexTerms:
        # The keys of a term for which the text is searched do not prove that the text contains it.
        terms = super().index_terms()
        return IndexTerms(terms.candidates) if self._searched is None else terms

    def indices(self, event: Event) -> list[Indices]:
        return find_occurrences(event.analyzed_text, self.text)


class PhraseCondition(TextCondition):
    """The rule operator ``"words"``: words directly after each other, each of which ``track`` would find too."""

    __slots__ = ("_required_words", "phrase")

    def __init__(self, phrase: WordSequence, suffix: str = "") -> None:
        super().__init__(_quote_words(phrase) + suffix, phrase.words)
        self.phrase = phrase
        self._required_words = frozenset(phrase.words)

    def noun(self) -> str:
        return f"the phrase {self.text}"

    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        return self._required_words <= analyzed.terms and analyzed.word_sequence.contains(self.phrase)

    def indices(self, event: Event) -> list[Indices]:
        analyzed = event.analyzed_text
        if not self._required_words <= analyzed.terms:
            return []
        spans = sequence_spans(analyzed.text, analyzed.entities)
        return sorted({(spans[first][0], spans[last][1]) for first, last in self._find_spans(analyzed.word_sequence)})

    def _find_spans(self, sequence: WordSequence) -> Iterator[tuple[int, int]]:
        return ((start, start + len(self.phrase.words) - 1) for start in sequence.find(self.phrase))


class ProximityCondition(PhraseCondition):
    """The rule operator ``"words"~N``: the words near each other in the text. ``distance`` is N.

    Each word may stand up to N words after its place in the phrase. So up to N other words may stand between two words
    in the given order. In the reverse order up to N - 2 may, because swapping two words moves one by two places. If the
    phrase has a word twice, the text must have it twice.
    """

    __slots__ = ("distance",)

    def __init__(self, phrase: WordSequence, distance: int) -> None:
        super().__init__(phrase, f"~{distance}")
        self.distance = distance

    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        return self._required_words <= analyzed.terms and any(self._find_spans(analyzed.word_sequence))

    def _find_spans(self, sequence: WordSequence) -> Iterator[tuple[int, int]]:
        # For some start, each word must stand at its position in the phrase or up to ``distance`` later. Positions are
        # bits of an integer, so that all starts are checked in one step. Starts before the text are included.
        words = self.phrase.words
        before = len(words) + self.distance
        positions = {word: bits << before for word, bits in sequence.positions(words).items()}
        starts = -1
        for nth, word in enumerate(words):
            place = within_reach = positions[word] >> nth
            for later in range(1, self.distance + 1):
                within_reach |= place >> later
            starts &= within_reach
        while starts:
            start = starts & -starts
            starts ^= start
            used = self._assign_positions(positions, start.bit_length() - 1)
            if used:
                yield (used & -used).bit_length() - 1 - before, used.bit_length() - 1 - before

    def _assign_positions(self, positions: Mapping[str, int], start: int) -> int:
        """Find a different word of the text for each word of a phrase whose first word is expected at ``start``.

        A word may stand up to ``distance`` words after its place in the phrase. Returns a bit set of the word positions
        in the text that were taken, or 0 if a word of the phrase finds no free one.
        """
        used, window = 0, (2 << self.distance) - 1
        for at, word in enumerate(self.phrase.words, start=start):
            free = positions[word] & ~used & window << at
            if not free:
                return 0
            used |= free & -free
        return used


class LinkCondition(TextCondition):
    """The rule operator ``url:``: a link in the text has the words of the value directly after each other."""

    __slots__ = ("phrase",)

    def __init__(self, phrase: WordSequence) -> None:
        super().__init__("url:" + _format_words(phrase), phrase.words)
        self.phrase = phrase

    def noun(self) -> str:
        return f"a link with {' '.join(self.phrase.words)}"

    def is_found_in(self, analyzed: AnalyzedText) -> bool:
        return analyzed.contains_link(self.phrase)

    def indices(self, event: Event) -> list[Indices]:
        analyzed = event.analyzed_text
        links = zip(analyzed.entities.urls, analyzed.link_words, strict=True)
        return [url.indices for url, forms in links if any(form.contains(self.phrase) for form in forms)]


class BioCondition(Condition):
    """The rule operator ``bio:``: words directly after each other in the author's bio when the status was posted."""

    __slots__ = ("phrase",)

    def __init__(self, phrase: WordSequence) -> None:
        super().__init__("bio:" + _format_words(phrase))
        self.phrase = phrase

    def matches(self, event: Event) -> bool:
        return bool(event.bio) and bio_words(event.bio).contains(self.phrase)

    def index_terms(self) -> IndexTerms:
        return IndexTerms((), [frozenset((index_keys.BIO + rarest_key(self.phrase.words),))])

    def describe(self, event: Event) -> str:
        if not event.bio:
            return "the author has no bio"
        return f"the author's bio {'has' if self.matches(event) else 'does not have'} {' '.join(self.phrase.words)}"


def parse_keyword(value: OperatorValue) -> Condition:
    """Return the condition of a word, hashtag, mention or cashtag in a rule. Raises RuleError for anything else."""
    folded = fold(value.text)
    sign = folded[0]
    if sign in _ENTITIES and words_in_order(folded) != [folded]:  # the key #️⃣ is an emoji
        found = extract_entities(sign + value.text[1:])
        for name, span in (*found.hashtags, *found.mentions, *found.cashtags):
            if span == (0, len(value.text)):
                return TermCondition(sign + fold(name))
        noun = _ENTITIES[sign]
        raise value.refusal(f"{value.text[:40]} is not a {noun}", f"a {noun} such as {sign}tea")
    _check_word(value)
    if value.text in _OTHER_LANGUAGES:
        problem, expected = _OTHER_LANGUAGES[value.text]
        raise value.refusal(problem, f'{expected}, or "{folded}" in quotes')
    return TermCondition(folded)


def parse_phrase(value: OperatorValue, distance: str | None = None) -> Condition:
    """Return the condition of ``"words"`` or, with N as ``distance``, of ``"words"~N``. Raises RuleError if invalid."""
    phrase = _parse_words(value)
    if distance is None:
        return PhraseCondition(phrase)
    if not re.fullmatch(rf"[1-{MAX_DISTANCE}]", distance):
        expected = f"a number from 1 to {MAX_DISTANCE} behind the ~"
        raise value.refusal(f"~{distance[:40]} is not a valid distance", expected)
    if not 2 <= len(phrase.words) <= MAX_PROXIMITY_WORDS:
        expected = f"2 to {MAX_PROXIMITY_WORDS} words in the quotes before the ~"
        raise value.refusal(f"~ cannot be used with {len(phrase.words)} words", expected)
    return ProximityCondition(phrase, int(distance))


def parse_link(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``url:``. Raises RuleError if the value has no word."""
    phrase = WordSequence.of_link(value.text)
    if not phrase.words:
        raise value.refusal("url: has no word", "a part of a link")
    if not value.quoted:
        _check_word(value)
    return LinkCondition(phrase)


def parse_bio(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``bio:``. Raises RuleError if the value has no word."""
    if not value.quoted:
        _check_word(value)
    return BioCondition(_parse_words(value))


def _parse_words(value: OperatorValue) -> WordSequence:
    phrase = WordSequence.of(value.text)
    if not phrase.words:
        raise value.refusal("the quotes contain no word", "one word or more")
    return phrase


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


def _format_words(phrase: WordSequence) -> str:
    """Return the words as the value of an operator, without quotes if they are one word that is read as itself."""
    first = phrase.words[0]  # a cashtag is a word of a phrase, but without quotes it is none
    return first if len(phrase.words) == 1 and words_in_order(first) == [first] else _quote_words(phrase)


def _quote_words(phrase: WordSequence) -> str:
    """Return the words as one quoted text, with a space between two words unless the phrase joins them."""
    pieces = (word if phrase.joined >> nth & 1 else f" {word}" for nth, word in enumerate(phrase.words))
    return f'"{"".join(pieces).lstrip()}"'
