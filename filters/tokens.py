"""The one normalization of text, and how a text is split into words.

A word stands between spaces, without its outer punctuation. If a word has punctuation inside, its parts are words too:
``rock'n'roll!`` gives ``rock'n'roll``, ``rock``, ``n`` and ``roll``. An emoji separates words like punctuation and is
also a word itself, so ``love😍`` gives ``love`` and ``😍``. A word also ends where a script without spaces begins or
ends: ``iPhoneを`` gives ``iphone``. For the rest of it see :mod:`filters.unspaced_scripts`.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from filters import unspaced_scripts
from filters.unicode_classes import SYMBOLS, UNSPACED_SCRIPTS, WORD_CHARACTERS

_FLAG = r"[\U0001f1e6-\U0001f1ff]{2}"
_SYMBOL = rf"[{SYMBOLS}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*"
_EMOJI = rf"{_FLAG}|{_SYMBOL}(?:\u200d{_SYMBOL})*"
_EMOJI_PATTERN = re.compile(_EMOJI)
_WORD = rf"\w[{WORD_CHARACTERS}]*"
_WORDS = re.compile(_WORD)
_CHUNKS = re.compile(r"\S+")
_WORDS_AND_EMOJIS = re.compile(rf"{_WORD}|{_EMOJI}")
_NOT_UNSPACED = rf"(?![{UNSPACED_SCRIPTS}])"
_SPACED_WORD = rf"{_NOT_UNSPACED}\w(?:{_NOT_UNSPACED}[{WORD_CHARACTERS}])*"
_WORDS_EMOJIS_AND_CHARACTERS = re.compile(rf"[{UNSPACED_SCRIPTS}]|{_SPACED_WORD}|{_EMOJI}")


def fold(text: str) -> str:
    """Return the text without differences of case and of Unicode form: NFC, full case folding, NFC again.

    Accents are kept (``touché`` is not ``touche``), and so are the different kinds of apostrophes.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def words(folded: str) -> set[str]:
    """Return all words of a case-folded text. For a word with punctuation inside, return the word and its parts."""
    if unspaced_scripts.has_unspaced(folded):
        found = unspaced_scripts.grams(unspaced_scripts.find_runs(folded))
        return found | _spaced_words(unspaced_scripts.blank_unspaced(folded))
    return _spaced_words(folded)


def word_spans(folded: str) -> Iterator[tuple[int, int]]:
    """Return the positions (start, end) of all words of a case-folded text, except those in scripts without spaces.

    For a word with punctuation inside, return the position of the word and those of its parts.
    """
    apart = unspaced_scripts.blank_unspaced(folded)
    for chunk in _CHUNKS.finditer(apart):
        found = [word.span() for word in _WORDS.finditer(apart, *chunk.span())]
        if len(found) > 1:
            yield found[0][0], found[-1][1]
        yield from found
        yield from (emoji.span() for emoji in _EMOJI_PATTERN.finditer(apart, *chunk.span()))


def words_cut_at_marks(folded: str) -> list[str]:
    """Return the words of a case-folded text, split at all punctuation, in no particular order."""
    if unspaced_scripts.has_unspaced(folded):
        found = unspaced_scripts.grams(unspaced_scripts.find_runs(folded))
        return [*_WORDS.findall(unspaced_scripts.blank_unspaced(folded)), *found]
    return _WORDS.findall(folded)


def words_in_order(folded: str) -> list[str]:
    """Return the words and emoji of a case-folded text in order, split at all punctuation.

    Each character of a script without spaces, such as Chinese, is one word, so that phrases are found at any position.
    """
    if folded.isascii():
        return _WORDS.findall(folded)
    pattern = _WORDS_EMOJIS_AND_CHARACTERS if unspaced_scripts.has_unspaced(folded) else _WORDS_AND_EMOJIS
    return pattern.findall(folded)


def _spaced_words(folded: str) -> set[str]:
    found = set(folded.split())
    punctuated = [chunk for chunk in found if not chunk.isalnum()]
    found.difference_update(punctuated)
    for chunk in punctuated:
        found.update(_words_of_chunk(chunk))
    return found


@lru_cache(maxsize=8192)
def _words_of_chunk(chunk: str) -> tuple[str, ...]:
    """Return the words of a text that has no spaces. Cached: frequent texts such as ``don't`` take long to split."""
    emoji = () if chunk.isascii() else _EMOJI_PATTERN.findall(chunk)
    found = list(_WORDS.finditer(chunk))
    if not found:
        return tuple(emoji)
    core = chunk[found[0].start() : found[-1].end()]
    return (core, *emoji) if len(found) == 1 else (core, *emoji, *(match.group() for match in found))
