"""What the last release offered to programs and people is still there. ``docs/release.md`` has the promises."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.server import ROOT, environment
from tests.last_release.code import FACTS, git, last_release, unpack, variables
from tests.last_release.surface import facts

FETCH = "the extra `server` installs a Valkey and the model that detects languages"

REMOVED = {
    "command stream-server fetch --json": FETCH,
    "command stream-server fetch names VALUE": FETCH,
    "command stream-server fetch names cld2": FETCH,
    "command stream-server fetch names valkey-server": FETCH,
    "command stream-server fetch needs: nothing": FETCH,
    "object PasswordChange has current_password: string": "it is `password`, as the design of the wire says",
    "object PasswordChange needs: current_password, password": "they are `password` and `new_password`",
}
"""Facts of the last release that are gone, each with the reason. The CHANGELOG has them, too."""


def _before() -> list[str]:
    return FACTS.read_text(encoding="utf-8").splitlines()[1:]


def test_everything_of_the_last_release_is_there() -> None:
    """No setting, command, metric, route, member, error code or name for programs is gone or means something else."""
    assert sorted({*_before()} - {*facts()} - {*REMOVED}) == []


def test_what_is_listed_as_removed_was_there_and_is_gone() -> None:
    """A line that a change has left behind would hide a later removal."""
    assert sorted({*REMOVED} - {*_before()}) == []
    assert sorted({*REMOVED} & {*facts()}) == []


def test_the_last_release_is_the_newest_tag() -> None:
    """After a tag, the next commit makes it the last release. Without tags, or without history, nothing is compared."""
    tag = git("describe", "--tags", "--match", "v[0-9]*", "--abbrev=0", "HEAD^")
    if tag is None:
        pytest.skip("no tag of a release before this commit")
    assert tag.decode().strip() == f"v{last_release().version}"


@pytest.mark.extended
def test_the_facts_are_those_of_its_code(tmp_path: Path) -> None:
    """The program of this version finds the written facts in the code of the last release."""
    code = unpack()
    program = f"import sys; sys.path.append({str(ROOT)!r}); from tests.last_release import surface; surface.main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment() | variables(code), cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == _before()
