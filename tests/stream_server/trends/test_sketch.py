"""The sketch of trends beside exact counts, and what becomes a trend."""

import random

import pytest

from stream_server.trends import counter as sketch
from stream_server.trends.counter import HOUR_MS, Term, TrendSketch

SHARED_BITS = 2
"""By how much a count may be too low because pairs of author and term share a bit. Two of 6,000 pairs would be many."""

START = 500_000 * HOUR_MS
"""The begin of an hour, in ms since 1970."""


def tag(text: str, language: str = "en") -> Term:
    return "tag", language, text


def count(counted: TrendSketch, ms: int, author: str, *terms: Term) -> None:
    counted.add_posts(ms, 1)
    counted.add_terms(author, set(terms))


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_exact_within_the_bound(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Authors of each tag in an hour, with many more tags than there is room for, as an exact set counts them."""
    monkeypatch.setattr(sketch, "MAX_TERMS", 100)
    monkeypatch.setattr(sketch, "MAX_CLOSED_TERMS", 50)
    source, counted, exact = random.Random(seed), TrendSketch(), dict[str, set[str]]()
    for n in range(6000):
        author, text = f"{source.randrange(400)}", f"t{int(source.paretovariate(0.7)) % 5000}"
        count(counted, START + n * HOUR_MS // 6000, author, tag(text))
        exact.setdefault(text, set()).add(author)
    report = counted.report("tag", "", 1000)
    assert (report.posts, report.counted) == (6000, 6000)
    assert report.max_undercount > 0, "the bound was used"
    found = {trend.text: trend.authors for trend in report.trends}
    may_be_lost = report.max_undercount + SHARED_BITS
    for text, authors in exact.items():
        assert len(authors) - may_be_lost <= found.get(text, 1) <= max(1, len(authors))
    assert len(found) > 10


def test_what_everybody_says_in_every_hour_is_no_trend() -> None:
    counted = TrendSketch()
    for hour in (0, 1):
        for n in range(100):
            new = [tag("news")] if hour == 1 and n < 10 else []
            count(counted, START + hour * HOUR_MS + n * 30_000, f"{n}", tag("the"), *new)
    (trend,) = counted.report("tag", "", 10).trends
    assert (trend.text, trend.authors, trend.before, trend.growth) == ("news", 10, 0, 10.0)


def test_one_author_makes_no_trend() -> None:
    """Not even around a full hour, before and after which an author counts."""
    counted = TrendSketch()
    for n in range(-250, 250):
        count(counted, START + n * 1000, "spammer", tag("buy"))
        count(counted, START + n * 1000, f"{n % 3}", tag("tea", "de"))
    assert [(trend.text, trend.authors) for trend in counted.report("tag", "", 10).trends] == [("tea", 6)]
    assert counted.report("tag", "en", 10).trends == []
    assert [trend.text for trend in counted.report("tag", "de", 10).trends] == ["tea"]
    assert counted.report("word", "", 10).trends == []


def test_a_term_leaves_with_its_hour() -> None:
    counted = TrendSketch()
    for author in "abc":
        count(counted, START, author, tag("tea"))
    counted.add_posts(START + HOUR_MS, 1)
    assert counted.report("tag", "", 10).trends == []
    for author in "ab":
        count(counted, START + HOUR_MS, author, tag("tea"))
    counted.add_posts(START + 2 * HOUR_MS + 1, 0)
    report = counted.report("tag", "", 10)
    assert (report.posts, report.from_ms) == (0, START + HOUR_MS + sketch.BUCKET_MS)
