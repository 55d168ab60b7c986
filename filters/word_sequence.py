"""A text as a sequence of words, in which rules search phrases."""

import re
from collections.abc import Iterable, Iterator
from typing import Self

from filters.entities import to_display_url
from filters.tokens import Token, fold, tokens, words_in_order
from filters.unspaced_scripts import has_unspaced

_LINK_PREFIX = re.compile(r"(?<![A-Za-z0-9_])(?:https?://(?:www\.)?|www\.)(?=\w)", re.IGNORECASE)
"""The beginning of a link that is not part of the link as it is displayed and tracked."""


class WordSequence:
    """The words of a text in order, split at all punctuation. Immutable.

    Emoji are words, and so are the characters of scripts without spaces, such as Chinese. Such a character is *joined*
    to a word that directly precedes or follows it. If a phrase joins two words, it is found only where the text joins
    them. So ``"東京"`` is not found in ``東。京``, but ``"東 京"`` is found there and in ``東京``.

    Attributes:
        words: The case-folded words.
        joined: A bit set. Bit n is set if word n is joined to word n - 1.
        text: The words with a space before and after each. A sequence without joined words is contained in another one
            if and only if its ``text`` is contained in the text of the other.
    """

    __slots__ = ("joined", "text", "words")

    def __init__(self, words: Iterable[str], joined: int = 0) -> None:
        self.words = tuple(words)
        self.joined = joined
        self.text = f" {' '.join(self.words)} "

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the words of a text. Its links have no ``http://``, ``https://`` and ``www.``."""
        return cls._of_folded(fold(blank_link_prefixes(text)))

    @classmethod
    def of_link(cls, link: str) -> Self:
        """Return the words of a link, without emoji, the protocol and ``www.``."""
        folded = fold(to_display_url(link))
        return cls._of_tokens(folded, [token for token in tokens(folded) if token.kind != "emoji"])

    @classmethod
    def _of_folded(cls, folded: str) -> Self:
        return cls._of_tokens(folded, list(tokens(folded))) if has_unspaced(folded) else cls(words_in_order(folded))

    @classmethod
    def _of_tokens(cls, folded: str, found: list[Token]) -> Self:
        joined, before = 0, Token("", -1, -1)
        for nth, token in enumerate(found):
            kinds = {before.kind, token.kind}
            if token.start == before.end and "unspaced" in kinds and "emoji" not in kinds:
                joined |= 1 << nth
            before = token
        return cls([folded[start:end] for _, start, end in found], joined)

    def contains(self, phrase: "WordSequence") -> bool:
        """Whether the words of the phrase follow each other directly in this text, joined where the phrase joins."""
        return phrase.text in self.text and (not phrase.joined or any(True for _ in self.find(phrase)))

    def find(self, phrase: "WordSequence") -> Iterator[int]:
        """Return the index of the first word of each place where this text contains the phrase.

        Positions are bits of an integer, so that all places are checked in one step for each word of the phrase.
        """
        positions = self.positions(phrase.words)
        starts = positions[phrase.words[0]]
        for nth, word in enumerate(phrase.words):
            starts &= positions[word] >> nth
            if phrase.joined >> nth & 1:
                starts &= self.joined >> nth
        while starts:
            start = starts & -starts
            starts ^= start
            yield start.bit_length() - 1

    def positions(self, words: Iterable[str]) -> dict[str, int]:
        """Return for each of the words a bit set: bit n is set if word n of this text is the word."""
        found = dict.fromkeys(words, 0)
        for nth, word in enumerate(self.words):
            if word in found:
                found[word] |= 1 << nth
        return found


def blank_link_prefixes(text: str) -> str:
    """Return the text with spaces in place of ``http://``, ``https://`` and ``www.``, so that all else stays in place.

    A phrase is treated alike. So it runs on from a text into a link, and it may be written with them or without.
    """
    if "." not in text and "://" not in text:
        return text
    return _LINK_PREFIX.sub(lambda prefix: " " * len(prefix.group()), text)
