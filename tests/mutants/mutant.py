"""Mutants of ``filters/`` and ``stream_server/``, kept as patches of one edit each.

A patch begins with a sentence on the mistake and ``Killed by:`` with the tests that must detect it. It applies by
its lines and not by their numbers, so it stays valid as long as the file has these lines once.
"""

import re
from pathlib import Path
from typing import NamedTuple, Self

FOLDER = Path(__file__).parent

RENEW = """{patch} does not apply any more: {path} has changed where it is.
Make the same mistake there by hand, put what `git diff {path}` says in the place of the diff in the patch, and take the
mistake back. Where there is nothing left to make it in, make another one."""

SOURCES = "filters/ or stream_server/"

_KILLER = re.compile(r"^Killed by: (\S+)$", re.MULTILINE)
_DIFF = re.compile(r"--- a/((?:filters|stream_server)/\S+)\n\+\+\+ b/\1\n@@ [^\n]*\n((?:[ +-][^\n]*\n)+)")


class Mutant(NamedTuple):
    """A mistake: in the file ``path``, ``old``, which occurs once, becomes ``new``. ``killers`` are pytest node ids."""

    name: str
    killers: tuple[str, ...]
    path: str
    old: str
    new: str

    @classmethod
    def read(cls, patch: Path) -> Self:
        """Read a patch. Raises ValueError unless it is one hunk and names a test that fails by it."""
        header, dashes, rest = patch.read_text(encoding="utf-8").partition("--- a/")
        killers, diff = _KILLER.findall(header), _DIFF.fullmatch(dashes + rest)
        if not killers or diff is None:
            raise ValueError(f"{patch.name} is not a sentence, `Killed by:` and one hunk in {SOURCES}")
        lines = diff[2].splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in side) for side in (" -", " +"))
        return cls(patch.stem, tuple(killers), diff[1], old, new)

    def applied(self, source: str) -> str:
        """Return ``source`` with the mistake. Raises AssertionError with instructions if ``old`` is not there once."""
        assert source.count(self.old) == 1, RENEW.format(patch=f"{self.name}.patch", path=self.path)
        return source.replace(self.old, self.new)


MUTANTS = [Mutant.read(patch) for patch in sorted(FOLDER.glob("*.patch"))]
