"""The one normalisation of text, and the words that a text yields.

A word is what stands between blanks, without its outer punctuation; if there is punctuation inside, its parts are
words too: ``rock'n'roll!`` yields ``rock'n'roll``, ``rock``, ``n`` and ``roll``. An emoji is punctuation to its
neighbours and besides a word of its own, so that ``love😍`` yields ``love`` and ``😍``. Where a script that has no
blanks begins or ends, a word ends: ``iPhoneを`` yields ``iphone`` (:mod:`filters.unspaced_scripts` says what the rest yields).
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
_WORDS_EMOJIS_AND_CHARACTERS = re.compile(
    rf"[{UNSPACED_SCRIPTS}]|{_NOT_UNSPACED}\w(?:{_NOT_UNSPACED}[{WORD_CHARACTERS}])*|{_EMOJI}"
)


def fold(text: str) -> str:
    """``text`` without differences of case and of Unicode form: NFC around full case folding.

    Accents stay (``touché`` is not ``touche``), and so do kinds of apostrophes.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def words(folded: str) -> set[str]:
    """The words of a text that was folded."""
    if unspaced_scripts.has_unspaced(folded):
        return _spaced_words(unspaced_scripts.blank_unspaced(folded)) | unspaced_scripts.grams(
            unspaced_scripts.find_runs(folded)
        )
    return _spaced_words(folded)


def word_spans(folded: str) -> Iterator[tuple[int, int]]:
    """Where each of the words stands that are set apart, so none of a script without blanks; some in one another."""
    apart = unspaced_scripts.blank_unspaced(folded)
    for chunk in _CHUNKS.finditer(apart):
        found = [word.span() for word in _WORDS.finditer(apart, *chunk.span())]
        if len(found) > 1:
            yield found[0][0], found[-1][1]
        yield from found
        yield from (emoji.span() for emoji in _EMOJI_PATTERN.finditer(apart, *chunk.span()))


def words_cut_at_marks(folded: str) -> list[str]:
    """The words of a text when it is cut at every mark, whatever stands between blanks; in no order."""
    if unspaced_scripts.has_unspaced(folded):
        return [
            *_WORDS.findall(unspaced_scripts.blank_unspaced(folded)),
            *unspaced_scripts.grams(unspaced_scripts.find_runs(folded)),
        ]
    return _WORDS.findall(folded)


def words_in_order(folded: str) -> list[str]:
    """The words and emoji of a text that was folded, cut at every mark, as they follow one another.

    Each character of a script without blanks stands alone, so that a phrase in it is found wherever it stands.
    """
    if folded.isascii():
        return _WORDS.findall(folded)
    return (_WORDS_EMOJIS_AND_CHARACTERS if unspaced_scripts.has_unspaced(folded) else _WORDS_AND_EMOJIS).findall(
        folded
    )


def _spaced_words(folded: str) -> set[str]:
    found = set(folded.split())
    punctuated = [chunk for chunk in found if not chunk.isalnum()]
    found.difference_update(punctuated)
    for chunk in punctuated:
        found.update(_words_of_chunk(chunk))
    return found


@lru_cache(maxsize=8192)
def _words_of_chunk(chunk: str) -> tuple[str, ...]:
    """Memoised: ``don't`` and ``delayed.`` come again and again, and take a regular expression each."""
    emoji = () if chunk.isascii() else _EMOJI_PATTERN.findall(chunk)
    found = list(_WORDS.finditer(chunk))
    if not found:
        return tuple(emoji)
    core = chunk[found[0].start() : found[-1].end()]
    return (core, *emoji) if len(found) == 1 else (core, *emoji, *(match.group() for match in found))
