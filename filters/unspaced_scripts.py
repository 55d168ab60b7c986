"""Scripts that put no blank between words, as in 東京タワーに行った: what can be found there without a dictionary.

A *run* is a stretch of text without blank or punctuation. A term with a character of such a script is found wherever
it stands in a run: exactly, in linear time, and in all these languages alike. So a run yields each such character
and each pair with one (overlapping bigrams) as words; a longer term is looked for by its pairs, then in the run itself.
A dictionary would cut better where a term stands across two words (京都 in 東京都), but it is another one for each
language, cuts one word in two ways in two texts, and does not know yesterday's word.
"""

import re
from collections.abc import Iterable, Iterator
from operator import add

from filters.unicode_classes import COMBINING_MARKS, UNSPACED_SCRIPTS, WORD_CHARACTERS, ZERO_WIDTH_JOINERS

_CHARACTER = re.compile(f"[{UNSPACED_SCRIPTS}]")
_STRETCH = re.compile(f"[{UNSPACED_SCRIPTS}][{UNSPACED_SCRIPTS}{COMBINING_MARKS}{ZERO_WIDTH_JOINERS}]*")
_RUN = re.compile(rf"\w[{WORD_CHARACTERS}]*")
_INSIDE = re.compile(f"[{WORD_CHARACTERS}]+")


def has_unspaced(text: str) -> bool:
    """Whether a character of such a script is in ``text``."""
    return not text.isascii() and _CHARACTER.search(text) is not None


def find_runs(folded: str) -> Iterator[str]:
    """The runs of a text that hold such a character."""
    return (run for run in _RUN.findall(folded) if _CHARACTER.search(run)) if has_unspaced(folded) else iter(())


def grams(runs: Iterable[str]) -> set[str]:
    """The characters of such scripts in these runs, and the pairs of neighbours with at least one."""
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
    """``folded`` with blanks in the place of all characters of such scripts: a word ends where they begin."""
    return _STRETCH.sub(lambda stretch: " " * len(stretch.group()), folded)


def is_substring_term(term: str) -> bool:
    """Whether a folded term is found wherever it stands in a run, and not only as a word of its own."""
    return has_unspaced(term) and _INSIDE.fullmatch(term) is not None


def needs_substring_search(term: str) -> bool:
    """Whether a folded term stands inside runs and is longer than the words that they yield."""
    return len(term) > 2 and is_substring_term(term)


def required_words(term: str) -> frozenset[str]:
    """Words that each text has in which the folded ``term`` is found: itself, or the pairs of one that is long."""
    return (
        frozenset(gram for gram in grams([term]) if len(gram) == 2)
        if needs_substring_search(term)
        else frozenset((term,))
    )


def find_starts(folded: str, term: str) -> Iterator[int]:
    """Where ``term`` stands in runs of a folded text, also where it overlaps itself."""
    for run in _RUN.finditer(folded):
        at = folded.find(term, run.start(), run.end())
        while at >= 0:
            yield at
            at = folded.find(term, at + 1, run.end())
