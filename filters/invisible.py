"""Invisible characters: those that Unicode calls default-ignorable. They are no part of a text or a term for matching.

A reader does not see them, so a word is found with and without them. A few carry meaning and stay: the joiners between
two letters, as in Persian and in Indic scripts, and inside an emoji its joiners and tags.
"""

import re
from collections.abc import Iterator

from filters.table_data import COMBINING_MARKS, INVISIBLE, PICTOGRAPHS
from filters.tables import LETTERS_AND_DIGITS, ZERO_WIDTH_JOINERS

_REGIONAL = r"[\U0001f1e6-\U0001f1ff]"
KEYCAP = r"[0-9#*]\u20e3"
"""A digit or sign on a key, without its presentation selector."""
_TAGS = r"[\U000e0020-\U000e007e]+\U000e007f"
_SKIN_TONE = r"[\U0001f3fb-\U0001f3ff]"
_PICTOGRAPH = rf"(?:{_SKIN_TONE}|[{PICTOGRAPHS}]{_SKIN_TONE}?(?:{_TAGS})?)"
_ONE_PICTOGRAPH = rf"[{PICTOGRAPHS}\U0001f3fb-\U0001f3ff]"
EMOJI = rf"{_REGIONAL}{{2}}|{KEYCAP}|{_PICTOGRAPH}(?:\u200d{_PICTOGRAPH})*"
"""An emoji by the grammar of Unicode (UTS #51), without the characters that choose its presentation."""

INFORMATION = "\u2139"
"""The one emoji that is a letter too."""

_WITH_MEANING = rf"{ZERO_WIDTH_JOINERS}\U000e0020-\U000e007f"
_WITHOUT_MEANING = re.compile(f"[{INVISIBLE}](?<![{_WITH_MEANING}])")
_MAY_HAVE_MEANING = re.compile(f"[{_WITH_MEANING}][{_WITH_MEANING}]*")  # begins with a set, which is searched faster
_IN_WORD = f"[{LETTERS_AND_DIGITS}{COMBINING_MARKS}]"
_HAS_MEANING = re.compile(
    rf"(?<={_IN_WORD})(?<![{INFORMATION}\u20e3])[{ZERO_WIDTH_JOINERS}]+(?!{KEYCAP}|[{INFORMATION}\u20e3])(?={_IN_WORD})"
    rf"|(?<={_ONE_PICTOGRAPH})(?<!{_REGIONAL})\u200d(?={_ONE_PICTOGRAPH})(?!{_REGIONAL})"
    rf"|(?:(?<=[{PICTOGRAPHS}])|(?<=[{PICTOGRAPHS}]{_SKIN_TONE}))(?<!{_REGIONAL}){_TAGS}"
)
"""Joiners between letters, joiners between pictographs, and the tags behind a pictograph."""


def drop_invisible(text: str) -> str:
    """Return the text without its invisible characters, except joiners between letters and the parts of an emoji."""
    return _MAY_HAVE_MEANING.sub(_keep_meaning, _WITHOUT_MEANING.sub("", text))


def _keep_meaning(found: re.Match[str]) -> str:
    kept = _HAS_MEANING.match(found.string, found.start())
    return kept.group() if kept else ""


def visible_places(text: str, visible: str) -> Iterator[int]:
    """Return the index in ``text`` of each character of ``visible``, which is ``drop_invisible(text)``."""
    at = -1
    for character in visible:
        at = text.index(character, at + 1)
        yield at
