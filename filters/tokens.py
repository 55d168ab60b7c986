"""The one normalisation of text, and the words that a text yields.

A word is what stands between blanks, without its outer punctuation; if there is punctuation inside, its parts are
words too: ``rock'n'roll!`` yields ``rock'n'roll``, ``rock``, ``n`` and ``roll``. An emoji is punctuation to its
neighbours and besides a word of its own, so that ``love😍`` yields ``love`` and ``😍``.
"""

import re
import unicodedata
from functools import lru_cache

from filters.alphabet import MARKS, SYMBOLS

_JOINERS = r"\u200c\u200d"
_FLAG = r"[\U0001f1e6-\U0001f1ff]{2}"
_SYMBOL = rf"[{SYMBOLS}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*"
_EMOJI = rf"{_FLAG}|{_SYMBOL}(?:\u200d{_SYMBOL})*"
_EMOJIS = re.compile(_EMOJI)
_WORDS = re.compile(rf"\w[\w{MARKS}{_JOINERS}]*")


def fold(text: str) -> str:
    """``text`` without differences of case and of Unicode form: NFC around full case folding.

    Accents stay (``touché`` is not ``touche``), and so do kinds of apostrophes.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def words(folded: str) -> set[str]:
    """The words of a text that was folded."""
    found = set(folded.split())
    punctuated = [chunk for chunk in found if not chunk.isalnum()]
    found.difference_update(punctuated)
    for chunk in punctuated:
        found.update(_words_of(chunk))
    return found


def parts(folded: str) -> list[str]:
    """What is left of a text when it is cut at every mark that belongs to no word, in order."""
    return _WORDS.findall(folded)


@lru_cache(maxsize=8192)
def _words_of(chunk: str) -> tuple[str, ...]:
    """Memoised: ``don't`` and ``delayed.`` come again and again, and take a regular expression each."""
    emoji = () if chunk.isascii() else _EMOJIS.findall(chunk)
    found = list(_WORDS.finditer(chunk))
    if not found:
        return tuple(emoji)
    core = chunk[found[0].start() : found[-1].end()]
    return (core, *emoji) if len(found) == 1 else (core, *emoji, *(match.group() for match in found))
