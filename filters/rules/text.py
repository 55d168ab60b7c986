"""Operators that look at words: in the text of a status, in what it quotes, in its links and its author's bio."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from filters import key, unspaced
from filters.alphabet import IN_WORD
from filters.entities import Indices, extract, shown
from filters.event import Event, bio_words
from filters.key import Clause, Key, rarest
from filters.occurrence import occurrences, word_places
from filters.rules.condition import Condition, Written, as_quoted
from filters.rules.error import RuleError
from filters.said import Said
from filters.tokens import fold, in_order

REACH = 6
"""The most words by which those of ``"…"~N`` may lie apart."""

NEAR_WORDS = 10
"""The most words of ``"…"~N``, so that no text makes it slow."""

_WORD = re.compile(rf"\w[{IN_WORD}]*")
_SIGNS = {"#": "#", "\uff03": "#", "@": "@", "\uff20": "@", "$": "$", "\uff04": "$"}
_ENTITIES = {"#": "hashtag", "@": "mention", "$": "cashtag"}


class Term(Condition):
    """A word, an emoji, or ``#x``, ``@x``, ``$x``: found as a term of ``track`` is, also in what is quoted."""

    __slots__ = ("_needed",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._needed = rarest(unspaced.needed(text))

    def matches(self, event: Event) -> bool:
        return event.said.has(self.text) or event.quoted.has(self.text)

    def keys(self) -> frozenset[Key]:
        return frozenset((self._needed, key.quoted(self._needed)))

    def clauses(self) -> Collection[Clause] | None:
        # A longer term in a script without blanks is not proved by what it is looked for by.
        return [frozenset((one,)) for one in self.keys()] if self._needed == self.text else None

    def why(self, event: Event) -> str:
        noun = _ENTITIES.get(self.text[0], "word")
        return _found(event, f"the {noun} {self.text}", here=event.said.has(self.text), quoted=self.matches(event))

    def indices(self, event: Event) -> list[Indices]:
        return occurrences(event.said, self.text)


class Phrase(Condition):
    """Words right behind each other, each of them a term of the text; the same of what is quoted."""

    __slots__ = ("_needed", "words")

    def __init__(self, words: Sequence[str], text: str | None = None) -> None:
        super().__init__(_in_quotes(words) if text is None else text)
        self.words = tuple(words)
        self._needed = frozenset(words)

    def matches(self, event: Event) -> bool:
        return self._stands(event.said) or self._stands(event.quoted)

    def keys(self) -> frozenset[Key]:
        needed = rarest(self._needed)
        return frozenset((needed, key.quoted(needed)))

    def why(self, event: Event) -> str:
        return _found(event, f"the phrase {self.text}", here=self._stands(event.said), quoted=self.matches(event))

    def indices(self, event: Event) -> list[Indices]:
        said = event.said
        if not self._needed <= said.terms:
            return []
        where = word_places(said.text)
        return sorted({(where[first][0], where[last][1]) for first, last in self._places(said.sequence)})

    def _stands(self, said: Said) -> bool:
        return self._needed <= said.terms and any(self._places(said.sequence))

    def _places(self, sequence: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Of each place in the sequence the first and the last word."""
        return _runs(sequence, self.words)


class Near(Phrase):
    """The words of a phrase, moved against each other by at most ``reach`` words.

    Two words in their order may have ``reach`` others between them; in the other order, which is a move by two more,
    ``reach`` - 2. No word of the text stands for two of the phrase.
    """

    __slots__ = ("reach",)

    def __init__(self, words: Sequence[str], reach: int) -> None:
        super().__init__(words, f"{_in_quotes(words)}~{reach}")
        self.reach = reach

    def _places(self, sequence: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Each word may stand at a start and its place in the phrase, or up to ``reach`` later.

        Places are bits of a number, those before the text as well, so that one step is taken for all starts at once.
        """
        before = len(self.words) + self.reach
        places = dict.fromkeys(self.words, 0)
        for at, word in enumerate(sequence, start=before):
            if word in places:
                places[word] |= 1 << at
        starts = -1
        for nth, word in enumerate(self.words):
            starts &= self._within(places[word] >> nth)
        while starts:
            start = starts & -starts
            starts ^= start
            taken = self._taken(places, start.bit_length() - 1)
            if taken:
                yield (taken & -taken).bit_length() - 1 - before, taken.bit_length() - 1 - before

    def _within(self, places: int) -> int:
        """Where one of ``places`` is, or is up to ``reach`` later."""
        found = places
        for later in range(1, self.reach + 1):
            found |= places >> later
        return found

    def _taken(self, places: Mapping[str, int], start: int) -> int:
        """A place for each word, none for two; 0 where a word finds none."""
        taken, window = 0, (2 << self.reach) - 1
        for at, word in enumerate(self.words, start=start):
            free = places[word] & ~taken & window << at
            if not free:
                return 0
            taken |= free & -free
        return taken


class Link(Condition):
    """``url:`` — parts of a link that follow one another."""

    __slots__ = ("words",)

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__("url:" + _as_value(words))
        self.words = tuple(words)

    def matches(self, event: Event) -> bool:
        return self._stands(event.said) or self._stands(event.quoted)

    def keys(self) -> frozenset[Key]:
        needed = rarest(self.words)
        return frozenset((needed, key.quoted(needed)))

    def why(self, event: Event) -> str:
        noun = f"a link with {' '.join(self.words)}"
        return _found(event, noun, here=self._stands(event.said), quoted=self.matches(event))

    def indices(self, event: Event) -> list[Indices]:
        return [url.indices for url in event.entities.urls if self._is_in(url.expanded_url, url.display_url)]

    def _stands(self, said: Said) -> bool:
        return any(self._is_in(url.expanded_url, url.display_url) for url in said.entities.urls)

    def _is_in(self, *links: str) -> bool:
        # A link that is shown shortened would yield half words.
        return any(not link.endswith("…") and any(_runs(_link_words(link), self.words)) for link in links)


class Bio(Condition):
    """``bio:`` — words that follow one another in what the author said of themselves when it was posted."""

    __slots__ = ("words",)

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__("bio:" + _as_value(words))
        self.words = tuple(words)

    def matches(self, event: Event) -> bool:
        return bool(event.bio) and any(_runs(bio_words(event.bio), self.words))

    def keys(self) -> frozenset[Key]:
        return frozenset((key.bio(rarest(self.words)),))

    def why(self, event: Event) -> str:
        if not event.bio:
            return "nothing is known of what the author says of themselves"
        return f"the author's bio {'has' if self.matches(event) else 'does not have'} {' '.join(self.words)}"


def keyword(written: Written) -> Condition:
    """A bare word, or with a sign an entity; raises RuleError for what is several words, or none."""
    folded = fold(written.text)
    if folded[0] in _SIGNS:
        return _entity(written)
    _check_word(written)
    if written.text == "AND":
        raise RuleError("a blank says AND", column=written.column, expected='an operator, or "and" in quotes')
    return Term(folded)


def phrase(written: Written, reach: str | None = None) -> Condition:
    """What stands in quotes, with N of ``~N``; raises RuleError."""
    words = _words(written)
    if reach is None:
        return Phrase(words)
    if not re.fullmatch(rf"[1-{REACH}]", reach):
        raise RuleError(
            f"~{reach[:40]} says no distance",
            column=written.column,
            expected=f"a number from 1 to {REACH} behind the ~",
        )
    if not 2 <= len(words) <= NEAR_WORDS:
        raise RuleError(
            f"{len(words)} words cannot be near each other",
            column=written.column,
            expected=f"2 to {NEAR_WORDS} words in the quotes before the ~",
        )
    return Near(words, int(reach))


def link(written: Written) -> Condition:
    """``url:``; raises RuleError."""
    words = _link_words(written.text)
    if not words:
        raise RuleError("url: has no word", column=written.column, expected="a part of a link")
    if not written.quoted:
        _check_word(written)
    return Link(words)


def bio(written: Written) -> Condition:
    """``bio:``; raises RuleError."""
    if not written.quoted:
        _check_word(written)
    return Bio(_words(written))


def _entity(written: Written) -> Condition:
    sign = _SIGNS[written.text[0]]
    noun = _ENTITIES[sign]
    found = extract(sign + written.text[1:])
    for name, span in (
        *((tag.text, tag.indices) for tag in found.hashtags),
        *((mention.login, mention.indices) for mention in found.mentions),
        *((tag.text, tag.indices) for tag in found.cashtags),
    ):
        if span == (0, len(written.text)):
            return Term(sign + fold(name))
    raise RuleError(f"{written.text[:40]} is no {noun}", column=written.column, expected=f"a {noun} such as {sign}tea")


def _words(written: Written) -> list[str]:
    words = in_order(fold(written.text))
    if not words:
        raise RuleError("there is no word in the quotes", column=written.column, expected="one word or more")
    return words


def _check_word(written: Written) -> None:
    folded = fold(written.text)
    if _WORD.fullmatch(folded):
        return
    words = in_order(folded)
    if not words:
        raise RuleError("there is no word in it", column=written.column, expected="a word")
    if words != [folded]:
        shown = f"{written.text[:40]}{'…' * (len(written.text) > 40)}"
        quoted = as_quoted(shown)
        raise RuleError(f"{shown} is not one word", column=written.column, expected=f"quotes around it: {quoted}")


def _as_value(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else _in_quotes(words)


def _in_quotes(words: Sequence[str]) -> str:
    """The words with blanks between them, but for those of a script that has none."""
    shown = words[0]
    for before, word in pairwise(words):
        shown += word if unspaced.holds(before) and unspaced.holds(word) else f" {word}"
    return f'"{shown}"'


def _runs(sequence: Sequence[str], words: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Where ``words`` stand in ``sequence`` right behind each other: the first and the last of them, each time."""
    at = -1
    for _ in range(sequence.count(words[0])):
        at = sequence.index(words[0], at + 1)
        if sequence[at : at + len(words)] == words:
            yield at, at + len(words) - 1


@lru_cache(maxsize=1024)
def _link_words(link: str) -> tuple[str, ...]:
    """Without emoji, which are no words of a link."""
    return tuple(word for word in in_order(fold(shown(link))) if _WORD.match(word))


def _found(event: Event, what: str, *, here: bool, quoted: bool) -> str:
    if here:
        return f"the text has {what}"
    if quoted:
        return f"the quoted text has {what}"
    either = "neither the text nor the quoted text has" if event.quoted.text else "the text does not have"
    return f"{either} {what}"
