"""The one normalization of text, and how a text is split into words.

A word is a longest row of letters, digits, marks and ``_``: ``rock'n'roll!`` gives ``rock``, ``n`` and ``roll``. An
emoji is a word: ``love😍`` gives ``love`` and ``😍``. A word also ends where a script without spaces begins or ends:
``iPhoneを`` gives ``iphone``. A term with punctuation is no word. It is searched in the text itself, see
:mod:`filters.term_search`.

Scripts that put no spaces between words, as in 東京タワーに行った, are searched without a dictionary. A *run* is a part
of the text without spaces and punctuation. A term with a character of such a script is found at any position of a run:
exactly, in linear time, and in the same way for all these languages. For this a run yields, as words, each such
character and each pair of neighbours that includes one (overlapping bigrams). A longer term is first looked up by its
pairs and then searched in the run itself.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import add
from typing import NamedTuple

from filters.invisible import EMOJI, INFORMATION, KEYCAP, drop_invisible
from filters.table_data import COMBINING_MARKS, INVISIBLE, NEWER_LETTERS, NEWER_MARKS, NEWER_NUMBERS, PICTOGRAPHS
from filters.tables import LETTERS_AND_DIGITS, UNSPACED_SCRIPTS, WORD_CHARACTERS, ZERO_WIDTH_JOINERS

_CHARACTER = re.compile(f"[{UNSPACED_SCRIPTS}]")
_STRETCH = re.compile(f"[{UNSPACED_SCRIPTS}][{UNSPACED_SCRIPTS}{COMBINING_MARKS}{ZERO_WIDTH_JOINERS}]*")
_INSIDE = re.compile(f"[{WORD_CHARACTERS}{UNSPACED_SCRIPTS}]+")  # the letters of later versions of Unicode too
_RUN = re.compile(rf"[{LETTERS_AND_DIGITS}{UNSPACED_SCRIPTS}][{WORD_CHARACTERS}{UNSPACED_SCRIPTS}]*")


def has_unspaced(text: str) -> bool:
    """Whether the text contains a character of a script without spaces, such as Chinese or Thai."""
    return not text.isascii() and _CHARACTER.search(text) is not None


def find_runs(folded: str) -> Iterator[str]:
    """Return the words of a case-folded text that have a character of a script without spaces, such as Chinese."""
    return (run for run in _RUN.findall(folded) if _CHARACTER.search(run)) if has_unspaced(folded) else iter(())


def grams(runs: Iterable[str]) -> set[str]:
    """Return each character of a script without spaces in the words, and each pair of neighbours that has one."""
    letters: set[str] = set()
    pairs: set[str] = set()
    for run in runs:
        letters.update(run)
        pairs.update(map(add, run, run[1:]))
    found = set(_CHARACTER.findall("".join(letters)))
    if len(found) < len(letters):
        pairs = {pair for pair in pairs if not found.isdisjoint(pair)}
    return found | pairs


def blank_unspaced(folded: str) -> str:
    """Return the text with each character of a script without spaces, such as Chinese, replaced by a space."""
    return _STRETCH.sub(lambda stretch: " " * len(stretch.group()), folded)


def is_substring_term(term: str) -> bool:
    """Whether a case-folded term has a character of a script without spaces, so that it is found inside words too."""
    return has_unspaced(term) and _INSIDE.fullmatch(term) is not None


def pairs(term: str) -> frozenset[str]:
    """Return the pairs of neighbours in a term of which one is a character of a script without spaces."""
    return frozenset(gram for gram in grams([term]) if len(gram) == 2)


def find_starts(folded: str, term: str) -> Iterator[int]:
    """Return the start of each occurrence of a term in the words of a case-folded text. Occurrences may overlap."""
    for run in _RUN.finditer(folded):
        at = folded.find(term, run.start(), run.end())
        while at >= 0:
            yield at
            at = folded.find(term, at + 1, run.end())


_EMOJI_PATTERN = re.compile(EMOJI)
_SPECIAL = re.compile(rf"[{PICTOGRAPHS}{UNSPACED_SCRIPTS}\u20e3]")
_ASCII_WORDS = re.compile(r"[a-z0-9_]+")
_NAME_WORD = re.compile(r"\w+")
_WORDS = re.compile(f"[{LETTERS_AND_DIGITS}][{WORD_CHARACTERS}]*")
_NOT_UNSPACED = rf"(?![{UNSPACED_SCRIPTS}]|{KEYCAP}|{INFORMATION})"
_WORDS_AND_EMOJIS = re.compile(rf"{EMOJI}|[{LETTERS_AND_DIGITS}](?:(?!{KEYCAP}|{INFORMATION})[{WORD_CHARACTERS}])*")
_TOKENS = re.compile(
    rf"(?P<emoji>{EMOJI})|(?P<unspaced>[{UNSPACED_SCRIPTS}])"
    rf"|(?P<word>{_NOT_UNSPACED}[{LETTERS_AND_DIGITS}](?:{_NOT_UNSPACED}[{WORD_CHARACTERS}])*)"
)
_NEWER = f"{NEWER_LETTERS}{NEWER_MARKS}"
_NEWER_STRETCH = re.compile(f"([{_NEWER}]+)")


def _in_basic_plane(table: str) -> str:
    return "".join(re.findall(r"\\u[0-9a-f]{4}(?:-\\u[0-9a-f]{4})?", table))


_BEYOND = r"\U00010000-\U0001efff\U00020000-\U0010ffff"
"""All beyond the basic plane except pictographs. A set searches these two ranges in a tenth of the time of exact ones,
which it compares one after the other."""
_MAY_BE_NEWER = re.compile(f"[{_in_basic_plane(_NEWER + NEWER_NUMBERS)}{_BEYOND}]")
_MAY_BE_RARE = re.compile(rf"[{_in_basic_plane(_NEWER + INVISIBLE)}\uff03\uff04\uff20{_BEYOND}]")
"""What folding must look at twice: newer and invisible characters, and full-width signs."""
_BASIC_WORDS = re.compile(rf"\w[\w{_in_basic_plane(WORD_CHARACTERS)}]*")
_DOTTED_I = re.compile("i\u0307+")


class Token(NamedTuple):
    """A word, emoji or other piece of a text, with its start and end (exclusive) in code points.

    ``kind`` is ``word``, ``emoji``, or ``unspaced`` for one character of a script without spaces, such as Chinese.
    """

    kind: str
    start: int
    end: int


def fold(text: str) -> str:
    """Return the text without invisible characters, and without differences of case and of Unicode form.

    Case and form are folded by NFC and full case folding (Unicode 3.13). One case more: ``İ`` gives ``i``, as people
    without a Turkish keyboard type it. The ``i`` without a dot stays apart, because it makes other words in Turkish.
    Accents are kept (``touché`` is not ``touche``), and so are the different kinds of apostrophes, and full-width
    letters. The full-width signs of entities become ``#``, ``@`` and ``$``. A letter or mark that is newer than Unicode
    14 stays as it is, because not every version of Python knows it.
    """
    if text.isascii():
        folded = text.lower()
        return text if folded == text else folded  # ten thousand streams keep their terms, and their queries too
    return fold_visible(drop_invisible(text)) if _MAY_BE_RARE.search(text) else _fold_known(text)


def fold_visible(text: str) -> str:
    """Return a text from which invisible characters were dropped before, folded like by :func:`fold`.

    For a part of such a text, in which a joiner may have lost the letters around it.
    """
    if text.isascii():
        return text.lower()
    for wide, sign in (("\uff03", "#"), ("\uff20", "@"), ("\uff04", "$")):
        text = text.replace(wide, sign)
    if not _MAY_BE_NEWER.search(text):
        return _fold_known(text)
    pieces = _NEWER_STRETCH.split(text)
    pieces[::2] = map(_fold_known, pieces[::2])
    return "".join(pieces)


def _fold_known(text: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return unicodedata.normalize("NFC", _DOTTED_I.sub("i", folded)) if "\u0307" in folded else folded


def fold_name(text: str) -> str:
    """Return the words of a name with one blank between them, folded further than by :func:`fold`, to find people.

    Accents and the width of letters do not matter either, and all but letters and digits only separates words. Empty
    for a text without letters and digits.
    """
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    plain = unicodedata.normalize("NFKC", "".join(each for each in letters if not unicodedata.combining(each)))
    return " ".join(_NAME_WORD.findall(plain.casefold()))


def words(folded: str) -> set[str]:
    """Return all words and emoji of a case-folded text. For scripts without spaces, return characters and pairs."""
    if folded.isascii():
        plain = folded.replace(" ", "").isalnum()  # splitting a text without punctuation takes half the time
        return set(folded.split() if plain else _ASCII_WORDS.findall(folded))
    # Patterns for all characters take several times as long, and most texts have few pieces that need them.
    pieces = folded.split()
    found = set(_ASCII_WORDS.findall(" ".join(filter(str.isascii, pieces))))
    rest = " ".join([piece for piece in pieces if not piece.isascii()])
    if _SPECIAL.search(rest):
        found.update(_EMOJI_PATTERN.findall(rest))
        rest = blank_emoji(rest)
        if has_unspaced(rest):
            found |= grams(find_runs(rest))
            rest = " ".join(blank_unspaced(rest).split())
    return found.union((_WORDS if _MAY_BE_NEWER.search(rest) else _BASIC_WORDS).findall(rest))


def tokens(folded: str) -> Iterator[Token]:
    """Return the words and emoji of a case-folded text, and each character of scripts without spaces, in order."""
    for found in _TOKENS.finditer(folded):
        yield Token(found.lastgroup or "", *found.span())


def words_in_order(folded: str) -> list[str]:
    """Return the words and emoji of a case-folded text in order, split at all punctuation.

    Each character of a script without spaces, such as Chinese, is one word, so that phrases are found at any position.
    """
    if folded.isascii():
        return _ASCII_WORDS.findall(folded)
    if has_unspaced(folded):
        return [found.group() for found in _TOKENS.finditer(folded)]
    return _WORDS_AND_EMOJIS.findall(folded)


def blank_emoji(folded: str) -> str:
    """Return the case-folded text with each emoji replaced by spaces, so that all else keeps its position."""
    return _EMOJI_PATTERN.sub(lambda emoji: " " * len(emoji.group()), folded)


def compounds(folded: str) -> Iterator[str]:
    """Yield the pieces of a case-folded text between spaces that consist of several words, such as ``don't``.

    A text has these pieces as index keys, so that the index finds most terms with punctuation without a search.
    """
    if folded.replace(" ", "").isalnum():
        return iter(())
    return filter(None, [_compound(piece) for piece in folded.split() if not piece.isalnum()])


@lru_cache(8192)
def _compound(piece: str) -> str:
    """Return a piece of a text without its outer punctuation.

    Return an empty string for a single word or a long piece.
    """
    if len(piece) > 60:
        return ""
    found = list(tokens(piece))
    return piece[found[0].start : found[-1].end] if len(found) > 1 else ""
