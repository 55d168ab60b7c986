"""The search for runs of host characters finds the same runs as splitting the whole text."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import entities
from filters.entities import find_dotted_run, find_urls
from filters.tables import BIDI_CONTROLS
from tests.growth import assert_linear

SEPARATOR = re.compile(rf"""[\s\x00-\x1f\x7f!"#$%&'()*+,/:;<=>?@\[\\\]^`{{|}}~\ufffe\ufeff\uffff{BIDI_CONTROLS}]""")
PIECES = [
    "http://", "HTTPS://", "www.", "example", ".com", ".co.jp", ".", "..", "-", "_", "/", "?", "a", "é", "ж", "日本",
    ".みんな", "@", "#", "t.co/", "x" * 70, "xn--p1ai", " ", "\n", ":80", "(a)", "!", "\u202e", "\ufeff", "中国", "😍",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=20).map("".join)


def _dotted_runs(text: str, at: int) -> list[tuple[int, int]]:
    """The slow and simple way: every run of the text from ``at`` on, without those that have no dot inside."""
    cuts = [at - 1, *(cut for cut in range(at, len(text)) if SEPARATOR.match(text[cut])), len(text)]
    runs = [(left + 1, right) for left, right in pairwise(cuts)]
    return [(start, end) for start, end in runs if "." in text[start:end].strip(".")]


@given(TEXTS, st.integers(0, 5))
def test_the_next_run_is_found_in_any_text(text: str, at: int) -> None:
    found, expected = [], _dotted_runs(text, at)
    while run := find_dotted_run(text, at):
        found.append(run)
        at = run[1]
    assert found == expected


@given(TEXTS)
def test_each_host_stands_in_a_run_with_a_dot_inside(text: str) -> None:
    for span in find_urls(text):
        assert "." in text[span.start : span.end]
        assert any(start < span.end and span.start < end for start, end in _dotted_runs(text, 0))


def test_words_without_a_dot_inside_are_passed() -> None:
    assert find_dotted_run("One. Two... .three a.b", 0) == (19, 22)
    assert find_dotted_run("One. Two... .three", 0) is None


@pytest.mark.parametrize("piece", [" ", "a", "a ", "(a) "])
def test_the_pattern_of_a_run_is_linear_where_it_finds_none(piece: str) -> None:
    """The search asks for a dot first. Should it ever not, these texts must not take exponential time."""

    def search(size: int) -> None:
        assert entities._RUN_WITH_DOT.match(piece * size) is None

    assert_linear(search, 50_000)
