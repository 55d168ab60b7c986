"""Scripts that put no spaces between words, as in 東京タワーに行った: how terms are found without a dictionary.

A *run* is a part of the text without spaces and punctuation. A term with a character of such a script is found at any
position of a run: exactly, in linear time, and in the same way for all these languages. For this a run yields, as
words, each such character and each pair of neighbours that includes one (overlapping bigrams). A longer term is first
looked up by its pairs and then searched in the run itself.
"""

import re
from collections.abc import Iterable, Iterator
from operator import add

from filters.unicode_classes import COMBINING_MARKS, UNSPACED_SCRIPTS, WORD_CHARACTERS, ZERO_WIDTH_JOINERS

_CHARACTER = re.compile(f"[{UNSPACED_SCRIPTS}]")
_STRETCH = re.compile(f"[{UNSPACED_SCRIPTS}][{UNSPACED_SCRIPTS}{COMBINING_MARKS}{ZERO_WIDTH_JOINERS}]*")
_INSIDE = re.compile(f"[{WORD_CHARACTERS}{UNSPACED_SCRIPTS}]+")  # the letters of later versions of Unicode too
_RUN = re.compile(rf"[\w{UNSPACED_SCRIPTS}][{WORD_CHARACTERS}{UNSPACED_SCRIPTS}]*")


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
