"""Every mistake in a filter, in the index or in the rule language is seen."""

from pathlib import Path

import pytest

from tests.mutants.checkout import Checkout
from tests.mutants.mutant import FILTERS, RULES, Mutant, each

SAMPLE = {"phrase_in_any_order"}
"""Those that are made in the first tier."""

TRACK = """What is wrong.

Killed by: tests/filters/test_track.py

--- a/filters/track.py
+++ b/filters/track.py
@@ -1,2 +1,2 @@
 same
-right
+wrong
"""


@each(FILTERS + RULES, SAMPLE)
def test_a_mistake_is_seen(checkout: Checkout, mutant: Mutant) -> None:
    """By the tests that say they are there for it, which pass without it."""
    with checkout.broken(mutant):
        run = checkout.run(mutant.killers)
    assert run.asserted, run.said


@pytest.mark.extended
def test_without_a_mistake_the_tests_pass(checkout: Checkout) -> None:
    """In the copy, where what fails could be the copy's fault."""
    run = checkout.run(sorted({killer for mutant in FILTERS + RULES for killer in mutant.killers}))
    assert run.code == 0, run.said


def test_mistakes_are_many_and_everywhere() -> None:
    """Twenty at least, in nearly every file that decides what matches."""
    assert len(FILTERS + RULES) >= 20
    assert len({mutant.path for mutant in FILTERS + RULES}) >= 18


def test_a_mistake_that_has_no_place_any_more_says_how_to_renew_it(tmp_path: Path) -> None:
    """Where its lines are gone, and where they are there twice."""
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
def test_a_patch_is_one_edit_that_something_has_to_see(tmp_path: Path, text: str) -> None:
    """In one file of the packages."""
    patch = tmp_path / "wrong.patch"
    patch.write_text(text)
    with pytest.raises(ValueError, match=r"wrong\.patch is not a sentence"):
        Mutant.read(patch)


def test_only_a_failed_assertion_counts(checkout: Checkout) -> None:
    """Neither tests that pass, nor what cannot be imported, nor what is not there."""
    old, new = "from filters import unspaced_scripts\n", "from filters import nothing\n"
    nonsense = Mutant("", (), "filters/track.py", old, new)
    killers = ["tests/filters/test_track.py::test_more_of_the_matcher"]
    assert not checkout.run(killers).asserted
    assert not checkout.run(["tests/filters/test_track.py::test_of_nothing"]).asserted
    with checkout.broken(nonsense):
        assert not checkout.run(killers).asserted
