"""The words of a text in order, in which rules search phrases.

An entity has words of its own, whatever is glued to it: ``@bob님이`` has the words ``bob`` and ``님이``. They are words
that ``track`` finds too: the login of a mention, the words of a hashtag, those of a link as ``expanded_url`` has them,
and a cashtag with its sign, because it is not found without.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, Self

from filters.entities import Cashtag, Entities, Indices, Mention, Url, extract_entities, to_display_url
from filters.folded_text import MAX_CACHED_TEXTS, folded_text
from filters.tables import LETTERS_AND_DIGITS, UNSPACED_SCRIPTS, WORD_CHARACTERS
from filters.tokens import Token, fold, has_unspaced, tokens, words_in_order

_LINK_PREFIX = re.compile(
    rf"(?=[hw])(?:(?<![{WORD_CHARACTERS}])|(?<=[{UNSPACED_SCRIPTS}]))"  # two letters are searched faster than a set
    rf"(?:https?://(?:www\.)?|www\.)(?=[{LETTERS_AND_DIGITS}])",
    re.IGNORECASE,
)
"""The beginning of a link that is not part of the link as it is displayed and tracked.

Behind a letter, as in ``caféwww.``, it is the end of a word. Scripts without spaces are the exception.
"""


class WordSequence:
    """The words of a text in order, split at all punctuation. Immutable.

    Emoji are words, and so are the characters of scripts without spaces, such as Chinese. Such a character is *joined*
    to a word that directly precedes or follows it outside entities. If a phrase joins two words, it is found only where
    the text joins them. So ``"東京"`` is not found in ``東。京``, but ``"東 京"`` is found there and in ``東京``.

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
    def of(cls, text: str, entities: Entities | None = None) -> Self:
        """Return the words of a text with these entities; None finds them in the text.

        Links have no ``http://``, ``https://`` and ``www.``.
        """
        words: list[str] = []
        joined = 0
        for piece in _pieces(text, extract_entities(text) if entities is None else entities):
            folded = fold(piece.text)
            if piece.is_word:
                words.append(folded)
            elif has_unspaced(folded):
                found = list(tokens(folded))
                joined |= _joined(found) << len(words)
                words += [folded[start:end] for _, start, end in found]
            else:
                words += words_in_order(folded)
        return cls(words, joined)

    @classmethod
    def of_link(cls, link: str) -> Self:
        """Return the words of a link, without emoji, the protocol and ``www.``."""
        folded = fold(to_display_url(link))
        found = [token for token in tokens(folded) if token.kind != "emoji"]
        return cls([folded[start:end] for _, start, end in found], _joined(found))

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
        """Return a bit set for each of ``words``: bit n says whether this word is the n-th word of the text, from 0."""
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


def _joined(found: list[Token]) -> int:
    """Return a bit set of the tokens that directly follow another token, if one of the two is ``unspaced``."""
    joined, before = 0, Token("", -1, -1)
    for nth, token in enumerate(found):
        kinds = {before.kind, token.kind}
        if token.start == before.end and "unspaced" in kinds and "emoji" not in kinds:
            joined |= 1 << nth
        before = token
    return joined


@lru_cache(MAX_CACHED_TEXTS)
def sequence_spans(text: str, entities: Entities) -> tuple[Indices, ...]:
    """Return the start and end in the text of each word of ``WordSequence.of(text, entities)``.

    The words of an entity have those of the entity.
    """
    spans: list[Indices] = []
    for piece in _pieces(text, entities):
        folded = folded_text(piece.text)
        inside = [(0, 0)] if piece.is_word else [token[1:] for token in tokens(folded.text)]
        if piece.entity_span is None:
            spans += [folded.original_span(start, end, offset=piece.start) for start, end in inside]
        else:
            spans += [piece.entity_span] * len(inside)
    return tuple(spans)


class _Piece(NamedTuple):
    """A part of a text outside its entities, or the words of an entity.

    Attributes:
        text: The part itself, or the words of the entity as filters find them.
        start: Where the part begins, in code points.
        entity_span: Start and end of the entity. None outside entities.
        is_word: Whether ``text`` is one word, punctuation included.
    """

    text: str
    start: int
    entity_span: Indices | None = None
    is_word: bool = False


def _pieces(text: str, entities: Entities) -> Iterator[_Piece]:
    if not any(entities):
        yield _Piece(blank_link_prefixes(text), 0)
        return
    at = 0
    for entity in sorted([entity for family in entities for entity in family], key=lambda entity: entity.indices):
        start, end = entity.indices
        yield _Piece(blank_link_prefixes(text[at:start]), at)
        if isinstance(entity, Url):
            yield _Piece(blank_link_prefixes(to_display_url(entity.expanded_url)), start, entity.indices)
        elif isinstance(entity, Cashtag):
            yield _Piece(f"${entity.text}", start, entity.indices, is_word=True)
        else:
            yield _Piece(entity.login if isinstance(entity, Mention) else entity.text, start, entity.indices)
        at = max(at, end)  # the entities of a foreign status may overlap
    yield _Piece(blank_link_prefixes(text[at:]), at)
