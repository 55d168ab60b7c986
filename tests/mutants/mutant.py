"""Mistakes made on purpose in ``filters/`` and ``stream_server/``, each one edit that a hurried hand might make.

They are kept as patches. A patch begins with what is wrong, in a sentence, and ``Killed by:`` the tests that have to
see it. It goes by what it says and not by its line numbers, so it holds as long as the lines that it shows are there,
once.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Self

import pytest

FOLDER = Path(__file__).parent

RENEW = """{patch} does not apply any more: {path} has changed where it is.
Make the same mistake there by hand, put what `git diff {path}` says in the place of the diff in the patch, and take the
mistake back. Where there is nothing left to make it in, make another one."""

SOURCES = "filters/ or stream_server/"

_KILLER = re.compile(r"^Killed by: (\S+)$", re.MULTILINE)
_DIFF = re.compile(r"--- a/((?:filters|stream_server)/\S+)\n\+\+\+ b/\1\n@@ [^\n]*\n((?:[ +-][^\n]*\n)+)")


class Mutant(NamedTuple):
    """In the file at ``path``, ``old`` stands once and becomes ``new``; ``killers`` are tests, named as for pytest."""

    name: str
    killers: tuple[str, ...]
    path: str
    old: str
    new: str

    @classmethod
    def read(cls, patch: Path) -> Self:
        """The mutant of a patch; ValueError where it is more than one edit of one file, or nothing is to kill it."""
        header, dashes, rest = patch.read_text(encoding="utf-8").partition("--- a/")
        killers, diff = _KILLER.findall(header), _DIFF.fullmatch(dashes + rest)
        if not killers or diff is None:
            raise ValueError(f"{patch.name} is not a sentence, `Killed by:` and one hunk in {SOURCES}")
        lines = diff[2].splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in side) for side in (" -", " +"))
        return cls(patch.stem, tuple(killers), diff[1], old, new)

    def applied(self, source: str) -> str:
        """``source`` with the mistake in it; AssertionError, saying what to do, where it has no place there."""
        assert source.count(self.old) == 1, RENEW.format(patch=f"{self.name}.patch", path=self.path)
        return source.replace(self.old, self.new)


MUTANTS = [Mutant.read(patch) for patch in sorted(FOLDER.glob("*.patch"))]
"""All of them."""

RULES = [mutant for mutant in MUTANTS if mutant.path.startswith("filters/rules/")]
FILTERS = [mutant for mutant in MUTANTS if mutant.path.startswith("filters/") and mutant not in RULES]
DELIVERY = [mutant for mutant in MUTANTS if mutant.path.startswith("stream_server/")]


def each(mutants: Collection[Mutant], sample: Collection[str]) -> pytest.MarkDecorator:
    """A test for each of ``mutants``; the first tier tries those of ``sample`` only, by their names."""
    assert {mutant.name for mutant in mutants} >= set(sample)
    tried = [
        pytest.param(mutant, id=mutant.name, marks=[pytest.mark.extended] * (mutant.name not in sample))
        for mutant in mutants
    ]
    return pytest.mark.parametrize("mutant", tried)
