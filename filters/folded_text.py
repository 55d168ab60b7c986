"""A case-folded text whose characters remember their place in the original text.

Folding changes lengths: ``ß`` becomes ``ss``, and invisible characters are left out.
"""

import re
from functools import lru_cache

from filters.entities import Indices
from filters.invisible import drop_invisible, visible_places
from filters.table_data import COMBINING_MARKS
from filters.tokens import fold_visible

_NORMALIZATION_UNIT = re.compile(rf"(?s:.)[{COMBINING_MARKS}\u1160-\u11ff]*")
"""A character with all that may combine with it in NFC: marks, and vowels and final consonants of Hangul."""
_MARKS = re.compile(f"[{COMBINING_MARKS}]*")
MAX_CACHED_TEXTS = 16  # a few, because explaining one rule searches many terms in one text


class FoldedText:
    """A case-folded text, and the position in the original text of each of its characters."""

    def __init__(self, original: str) -> None:
        visible = drop_invisible(original)
        places = list(visible_places(original, visible))
        self._original_spans: list[Indices] = []
        pieces = []
        for unit in _NORMALIZATION_UNIT.finditer(visible):
            piece = fold_visible(unit.group())
            pieces.append(piece)
            first, last = places[unit.start()], places[unit.end() - 1]
            marks = _MARKS.match(original, last + 1)  # an invisible mark belongs to its character, as in ❤️
            end = last + 1 if marks is None else marks.end()
            self._original_spans += [(first, end)] * len(piece)
        self.text = "".join(pieces)

    def original_span(self, start: int, end: int, *, offset: int = 0) -> Indices:
        """Return where ``text[start:end]`` of the folded text begins and ends in the original text.

        ``offset``, in code points, is where the original itself begins in a longer text.
        """
        return offset + self._original_spans[start][0], offset + self._original_spans[end - 1][1]


@lru_cache(MAX_CACHED_TEXTS)
def folded_text(text: str) -> FoldedText:
    """Return the folded text of ``text``, kept for the next terms that are searched in it."""
    return FoldedText(text)
