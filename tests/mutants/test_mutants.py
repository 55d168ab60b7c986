"""Tests detect every mutant: in a filter, in the index, in the rule language, and from the log to the clients."""

from pathlib import Path

import pytest

from tests.end_to_end.server import ROOT
from tests.mutants.checkout import Checkout
from tests.mutants.mutant import MUTANTS, Mutant
from tests.tiers import sample

SAMPLE = {"phrase_in_any_order", "rollback_without_gap"}
"""Mutants of the first tier."""

OF_EACH_FILE = {mutant.path: mutant for mutant in MUTANTS}.values()
"""Mutants of the second tier: one for each file. The others need ``--full``."""

TRACK = """What is wrong.

Killed by: tests/filters/test_track.py

--- a/filters/track.py
+++ b/filters/track.py
@@ -1,2 +1,2 @@
 same
-right
+wrong
"""


@pytest.mark.parametrize(
    "mutant", sample(MUTANTS, lambda mutant: mutant.name in SAMPLE, second_tier=lambda mutant: mutant in OF_EACH_FILE)
)
def test_a_mutant_is_detected(checkout: Checkout, mutant: Mutant) -> None:
    with checkout.broken(mutant):
        run = checkout.run(mutant.killers)
    assert run.asserted, run.said


@pytest.mark.extended
def test_the_tests_pass_without_a_mutant(checkout: Checkout) -> None:
    """Those of the sample: the suite runs all of them, and this run differs from it by the copy alone."""
    run = checkout.run(sorted({killer for mutant in MUTANTS for killer in mutant.killers if mutant.name in SAMPLE}))
    assert run.code == 0, run.said


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_patch_of_a_mutant_applies(mutant: Mutant) -> None:
    """Also of those that run with ``--full`` only."""
    path = ROOT / mutant.path
    assert mutant.applied(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("package", "mutants", "files"), [("filters", 20, 17), ("stream_server", 10, 6)])
def test_the_mutants_cover_the_filters_and_the_delivery(package: str, mutants: int, files: int) -> None:
    paths = [mutant.path for mutant in MUTANTS if mutant.path.startswith(f"{package}/")]
    assert len(paths) >= mutants
    assert len(set(paths)) >= files


def test_an_outdated_patch_gives_instructions(tmp_path: Path) -> None:
    patch = tmp_path / "wrong.patch"
    patch.write_text(TRACK)
    mutant = Mutant.read(patch)
    assert mutant.applied("before\nsame\nright\n") == "before\nsame\nwrong\n"
    for source in ("same\nother\n", "same\nright\n" * 2):
        with pytest.raises(AssertionError, match=r"`git diff filters/track\.py`"):
            mutant.applied(source)


@pytest.mark.parametrize(
    "text",
    [
        TRACK.replace("Killed by", "Seen by"),
        TRACK.replace("filters/track", "tests/reference"),
        TRACK + "@@ -9 +9 @@\n-more\n+less\n",
        TRACK + TRACK[TRACK.index("---") :],
    ],
)
def test_a_patch_is_one_edit_with_a_test(tmp_path: Path, text: str) -> None:
    patch = tmp_path / "wrong.patch"
    patch.write_text(text)
    with pytest.raises(ValueError, match=r"wrong\.patch is not a sentence"):
        Mutant.read(patch)


def test_only_a_failed_assertion_counts(checkout: Checkout) -> None:
    old, new = "from filters.tokens import fold\n", "from filters.nothing import fold\n"
    nonsense = Mutant("", (), "filters/track.py", old, new)
    killers = ["tests/filters/test_track.py::test_order_blanks_wide_signs_emoji_and_unicode_forms"]
    assert not checkout.run(killers).asserted
    assert not checkout.run(["tests/filters/test_track.py::test_of_nothing"]).asserted
    with checkout.broken(nonsense):
        assert not checkout.run(killers).asserted
