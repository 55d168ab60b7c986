"""The tables from data packages are those of the packages in the lock file."""

import re

import pytest
import regex  # type: ignore[import-untyped]  # it has no types

from filters import table_data
from filters import tables as read
from tests.filters import all_code_points, tables
from tests.tiers import sample


@pytest.mark.parametrize("name", sample(tables.CLASSES, lambda name: name == "INVISIBLE"))
def test_a_class_of_characters_is_current(name: str) -> None:
    pattern = re.compile(f"[{getattr(table_data, name)}]")
    assert [code for code in tables.CODE_POINTS if pattern.match(chr(code))] == tables.members(name)


@pytest.mark.parametrize("name", sample(tables.NEWER_CLASSES, lambda name: name == "NEWER_NUMBERS"))
def test_a_class_of_newer_characters_is_current(name: str) -> None:
    pattern = re.compile(f"[{getattr(table_data, name)}]")
    assert [code for code in tables.CODE_POINTS if pattern.match(chr(code))] == tables.newer_members(name)


def test_letters_and_digits_are_those_of_the_package_on_every_python() -> None:
    ours, theirs = re.compile(f"[{read.LETTERS_AND_DIGITS}]"), regex.compile(r"[\p{L}\p{N}_]")
    characters = "".join(map(chr, tables.CODE_POINTS))
    assert ours.findall(characters) == theirs.findall(characters)


@pytest.mark.parametrize("plane", sample(all_code_points.PLANES, lambda _: False, lambda plane: plane < 2))
def test_every_python_finds_the_same(plane: int) -> None:
    """The digests are those of Python 3.11. A change of folding, words or entities changes them too."""
    assert all_code_points.digest(plane) == all_code_points.DIGESTS[plane]


def test_every_domain_of_the_root_zone_is_known() -> None:
    assert tables.root_zone() - read.TLDS == set()


def test_the_codes_of_languages_are_current() -> None:
    assert tables.two_letter_languages() == read.TWO_LETTER_CODES
    assert tables.renamed_languages() == read.RENAMED
    assert tables.short_languages() == read.SHORT_CODES
    assert tables.macro_languages() == read.MACRO_LANGUAGES


def test_no_letter_is_an_emoji_but_one() -> None:
    """The patterns of words leave out the sign for information, which is the only letter among the emoji."""
    pictographs = re.compile(f"[{table_data.PICTOGRAPHS}]")
    letters = [chr(code) for code in tables.CODE_POINTS if re.match(r"\w", chr(code))]
    assert [letter for letter in letters if pictographs.match(letter)] == ["\u2139"]
