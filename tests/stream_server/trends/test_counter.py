"""The posts of the ring that are counted, and the terms of a post."""

import json
from functools import partial

import pytest

from stream_server.events.entry import PUBLIC_AUDIENCE, Entry
from stream_server.events.position import Position
from stream_server.hub.hub import Hub
from stream_server.trends.counter import HOUR_MS, LATE_MS, PostFields, TrendCounter, terms_of
from tests.stream_server.feed.test_invalid_entries import BODIES, DEEP
from tests.stream_server.hub.world import World

TEXTS = [
    ("Good #Tea and don't tea-time", {"good", "and", "don't", "tea", "time"}),
    ("see https://example.org/page or www.x.org @ann #tag $GE now", {"see", "now"}),
    (
        "abc1 a1bc no_one x\u2019y rock\u2019n\u2019roll \u00c9T\u00c9",
        {"rock\u2019n\u2019roll", "\u00e9t\u00e9", "x\u2019y"},
    ),
    ("\u6771\u4eac tower " + "z" * 31, {"tower"}),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_words_of_a_post(text: str, expected: set[str]) -> None:
    found = terms_of(PostFields("1", text, "en-GB"))
    assert found == {("word", "en", word) for word in expected}


def test_a_language_counts_under_its_present_code() -> None:
    for tag in ("iw-IL", "he"):
        assert terms_of(PostFields("1", "tea", tag)) == {("word", "he", "tea")}


def entry(n: int, ms: int, kind: str = "post", audience: str = "public", **members: object) -> Entry:
    position = Position(ms, n, n)
    status = {"id": str(position.status_number), "uid": str(n), "lang": "en", **members}
    status["entities"] = {"mentions": [], "hashtags": [{"text": "Tea", "indices": [0, 4]}], "cashtags": [], "urls": []}
    return Entry(position, kind, audience, json.dumps({"wire": {"status": status}}).encode())


class Log:
    """A hub whose ring has entries from a given time on, one a millisecond."""

    def __init__(self) -> None:
        self.hub: Hub = World().hub
        self.start_ms = self.hub.now_ms() - 60_000
        self.n = self.hub.head.n

    def add(self, after_ms: int, **more: object) -> Entry:
        self.n += 1
        added = entry(self.n, self.start_ms + after_ms, **more)  # type: ignore[arg-type]  # of any type
        self.hub.ring.append(added)
        return added


async def authors(log: Log) -> int:
    counting = TrendCounter(log.hub)
    await counting.count_new_posts()
    trends = counting.report("tag", "").trends
    return trends[0].authors if trends else 0


async def test_only_public_posts_of_users_in_good_standing_count() -> None:
    log = Log()
    for _ in range(3):
        log.add(0)
    log.add(1, audience="followers:4")
    log.add(2, audience="group:4")
    log.add(3, kind="like")
    log.hub.restricted_accounts.load({str(log.add(4).position.n)}, {str(log.add(5).position.n)}, log.hub.head)
    gone = log.add(6)
    log.add(7, kind="delete", id=str(gone.position.status_number), deleted=True)
    assert await authors(log) == 3


async def test_an_entry_that_is_none_is_passed_over() -> None:
    """An exception would end the task, and with it the server."""
    log = Log()
    log.hub.ring._max_bytes = 1 << 24
    log.add(0)
    deep = b'{"wire":{"status":{"uid":"7","meta":' + b"[" * DEEP + b"]" * DEEP + b"}}}"
    for n, body in enumerate([*BODIES.values(), deep], log.n + 1):
        log.hub.ring.append(Entry(Position(log.start_ms + 1, n, n), "post", PUBLIC_AUDIENCE, body))
        log.n = n
    for _ in range(2):
        log.add(2)
    assert await authors(log) == 3


async def test_each_entry_is_counted_once_and_a_second_that_lasts_is_awaited() -> None:
    log = Log()
    counting = TrendCounter(log.hub)
    for at in range(4):
        log.add(at)
    for _ in range(2):
        await counting.count_new_posts()
    assert counting.report("tag", "").posts == 4
    last = log.hub.ring.head
    log.add(60_000 + 5_000)  # a second that has not ended
    await counting.count_new_posts()
    assert counting.report("tag", "").posts == 4
    log.hub.ring.cut_after(last)
    log.n -= 1
    log.add(2000)
    await counting.count_new_posts()
    assert counting.report("tag", "").posts == 5


async def test_the_present_hour_goes_on_while_nobody_posts() -> None:
    """What was a trend last night is none in the morning, even if it was quiet in between."""
    log = Log()
    for at in range(4):
        log.add(at)
    counting = TrendCounter(log.hub)
    now_ms = log.hub.now_ms()

    def hours_later(hours: float) -> int:
        return now_ms + round(hours * HOUR_MS)

    for hours, posts in ((0, 4), (1.5, 0), (5, 0)):
        log.hub.now_ms = partial(hours_later, hours)
        await counting.count_new_posts()
        report = counting.report("tag", "")
        assert (report.posts, len(report.trends)) == (posts, min(posts, 1)), hours
        assert report.from_ms > log.hub.now_ms() - HOUR_MS - LATE_MS, hours


async def test_of_a_busy_second_some_entries_are_counted_whoever_counts() -> None:
    log = Log()
    for _ in range(1000):
        log.add(0)
    log.add(1000)
    reports = []
    for read_before in (False, True):
        counting = TrendCounter(log.hub)
        if read_before:
            log.add(2000)
        await counting.count_new_posts()
        reports.append(counting.report("tag", ""))
    assert (reports[0].posts, reports[0].counted) == (1001, 51)
    assert reports[1].trends[0].authors == 52
