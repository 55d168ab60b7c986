"""Counts of past posts, compared with counting each real post by a matcher that shares no code with the server."""

import asyncio
import base64
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import EPOCH_MS, format_iso_time, parse_iso_ms
from stream_server.hub import look_back
from stream_server.hub.catchup import reader
from stream_server.web.api import counts
from stream_server.web.http.app_keys import HUB, STORE
from tests import reference_rules
from tests.end_to_end.sample_texts import drafts
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import eventually

PATH = "/v1/rules/counts"
RULES = {
    "late": "flight (late OR delayed OR cancelled)",
    "thanks": "thanks",
    "others": "(you OR bag OR united) -thanks -is:reply",
}
Json = dict[str, Any]


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[RunningServer]:
    async with running_server(redis_url, {}) as server:
        yield server


async def count(server: RunningServer, **body: Any) -> Json:
    status, answer = await server.call("POST", PATH, json=body)
    assert status == 200, answer
    found: Json = answer
    return found


async def refused(server: RunningServer, **body: Any) -> tuple[int, str, str]:
    status, answer = await server.call("POST", PATH, json=body)
    return status, answer["error"]["code"], answer["error"].get("param", "")


async def count_all(server: RunningServer, **body: Any) -> list[Json]:
    """Return all pages."""
    pages = [await count(server, **body)]
    while (more := pages[-1]["next"]) is not None:
        pages.append(await count(server, **body, next=more))
    return pages


async def post(server: RunningServer, **body: Any) -> Json:
    status, answer = await server.call("POST", "/v1/statuses", json=body)
    assert status == 201, answer
    posted: Json = answer
    return posted


async def post_real(server: RunningServer, most: int) -> list[Json]:
    """Post real texts, and delete some. Return those that are left."""
    chance, posted = random.Random(4), [await post(server, **draft.body) for draft in drafts(most)[:most]]
    gone = chance.sample(posted, len(posted) // 7)
    for status in gone:
        await server.call("DELETE", f"/v1/statuses/{status['id']}")
    return [status for status in posted if status not in gone]


def ms_of(status: Json) -> int:
    return (int(status["id"]) >> 12) + EPOCH_MS


def by_hand(kept: list[Json], start: str, end: str) -> Json:
    """Count the posts from one time on and before another, as the answer has it, without its times."""
    span = range(parse_iso_ms(start), parse_iso_ms(end))
    matches = [
        [tag for tag, rule in RULES.items() if reference_rules.matches(rule, status, {})]
        for status in kept if ms_of(status) in span
    ]  # fmt: skip
    return {"count": sum(map(bool, matches)), "counts": Counter(tag for tags in matches for tag in tags)}


def told(bucket: Json) -> Json:
    return {"count": bucket["count"], "counts": Counter({one["tag"]: one["count"] for one in bucket["counts"]})}


def written() -> list[Json]:
    return [{"rule": rule, "tag": tag} for tag, rule in RULES.items()]


@pytest.mark.parametrize(
    ("page", "buckets"),
    [(4, 3), pytest.param(16, 1440, marks=pytest.mark.extended), pytest.param(256, 5, marks=pytest.mark.extended)],
)
async def test_counts_equal_counting_each_post(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, page: int, buckets: int
) -> None:
    """Deleted posts do not count. Each bucket comes once and whole, wherever the scan was cut."""
    kept = await post_real(server, 70)
    start_ms, end_ms = ms_of(kept[3]) + 1, ms_of(kept[-1]) + 1
    bucket_ms = (end_ms - start_ms) // 30  # instead of a minute, and as many of them on a slow machine
    monkeypatch.setitem(counts.BUCKET_MS, "minute", bucket_ms)
    monkeypatch.setattr(reader, "MAX_PAGE_ENTRIES", page)
    monkeypatch.setattr(look_back, "MAX_SCANNED_ENTRIES", 1)
    monkeypatch.setattr(counts, "MAX_BUCKETS", buckets)
    start, end = format_iso_time(start_ms), format_iso_time(end_ms)
    pages = await count_all(server, rules=written(), every="minute", **{"from": start, "to": end})
    found = [bucket for one in pages for bucket in one["buckets"]]
    assert len(pages) > 1
    assert found[0]["to"] == pages[0]["to"] == end
    assert found[-1]["from"] == pages[-1]["from"] == start
    assert [newer["from"] for newer in found[:-1]] == [older["to"] for older in found[1:]]
    assert all(parse_iso_ms(bucket["from"]) % bucket_ms == 0 for bucket in found[:-1])
    assert all(bucket["complete"] for bucket in found)
    assert [told(bucket) for bucket in found] == [by_hand(kept, bucket["from"], bucket["to"]) for bucket in found]
    assert sum(bucket["count"] for bucket in found) > 10


@pytest.mark.parametrize("path", ["counts", "search"])
async def test_a_delete_is_regarded_although_it_is_later_than_the_time(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A server that has not read the delete yet waits for it, also where it needs nobody's relations."""
    posted = await post(server, message="tea")
    hub, is_held = server.app[HUB], asyncio.Event()
    publish = hub.publish

    def hold(entry: Entry, *, is_last: bool = False) -> None:
        """Publish later, as a server does that is slow."""
        is_held.set()
        asyncio.get_running_loop().call_later(0.3, partial(publish, entry, is_last=is_last))

    await eventually(lambda: hub.head.ms >= ms_of(posted))
    monkeypatch.setattr(hub, "publish", hold)
    await server.call("DELETE", f"/v1/statuses/{posted['id']}")
    await is_held.wait()
    until = int(posted["id"]) + 1
    status, answer = await server.call("GET", f"/2/tweets/{path}/recent?query=tea&until_id={until}")
    assert status == 200, answer
    assert answer["meta"] == {{"counts": "total_tweet_count", "search": "result_count"}[path]: 0}


async def test_the_place_of_an_event_source_does_not_move_the_time(server: RunningServer) -> None:
    """What says where a stream goes on is no part of the question. Else unread buckets would look complete."""
    posted = await post(server, message="tea")
    await eventually(lambda: server.app[HUB].head.ms >= ms_of(posted))
    server.session.headers["Last-Event-ID"] = server.app[HUB].head.cursor
    page = await count(server, rules=[{"rule": "tea"}], every="day", **{"from": "-1h"})
    assert sum(bucket["count"] for bucket in page["buckets"]) == 1
    for path, total in (("counts", "total_tweet_count"), ("search", "result_count")):
        _, answer = await server.call("GET", f"/2/tweets/{path}/recent?query=tea&until_id={int(posted['id']) + 1}")
        assert answer["meta"][total] == 1


async def test_one_bucket_may_need_several_answers(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is finished, the answers have no bucket, and `next` keeps what is counted."""
    for number in range(20):
        await post(server, message=f"tea {number}" if number % 2 else "milk")
    monkeypatch.setattr(reader, "MAX_PAGE_ENTRIES", 4)
    monkeypatch.setattr(look_back, "MAX_SCANNED_ENTRIES", 1)
    # A time in the first entries: a bucket of a day may end while the test runs.
    pages = await count_all(server, rules=[{"rule": "tea"}], every="day", **{"from": "-1h"})
    assert len(pages) >= 5
    assert sum(bucket["count"] for page in pages for bucket in page["buckets"]) == 10
    assert [page["buckets"] for page in pages[:2]] == [[], []]
    assert pages[0]["from"] == pages[0]["to"]


async def test_saved_rules_are_counted_by_their_ids(server: RunningServer) -> None:
    """They count for the past too, also for the time before they were saved."""
    assert await refused(server, rules="saved", **{"from": "-1h"}) == (400, "invalid_parameter", "rules")
    await post(server, message="tea and ice")
    await post(server, message="ice")
    _, saved = await server.call("POST", "/v1/rules", json={"rules": [{"rule": "tea", "tag": "t"}, {"rule": "ice"}]})
    tea, ice = (rule["id"] for rule in saved["rules"])
    page = await count(server, rules="saved", every="day", **{"from": "-1h"})
    (counted,) = [bucket for bucket in page["buckets"] if bucket["count"]]
    assert counted["count"] == 2
    assert sorted(counted["counts"], key=lambda one: int(one["id"])) == [
        {"id": tea, "tag": "t", "count": 1}, {"id": ice, "tag": "", "count": 2},
    ]  # fmt: skip


async def test_what_the_log_has_lost_is_not_complete(server: RunningServer, redis_url: str) -> None:
    """The counts end with the bucket in which the log begins, and this one says that it is not complete."""
    posted = [await post(server, message="tea") for _ in range(6)]
    store, hub = server.app[STORE], server.app[HUB]
    newest = await store.log.head()
    await eventually(lambda: hub.head >= newest)  # the trimmer never takes what a server has not read yet
    await store.log._redis.execute(("XTRIM", "{core}:log", "MAXLEN", "=", 3))  # as the trimmer does
    page = await count(server, rules=[{"rule": "tea"}], every="minute", **{"from": "-3d"})
    assert page["next"] is None
    assert page["buckets"][-1]["complete"] is False
    assert parse_iso_ms(page["from"]) >= ms_of(posted[3]) - 60_000
    assert all(bucket["complete"] for bucket in page["buckets"][:-1])
    older = await count(server, rules=[{"rule": "tea"}], **{"from": "-3d", "to": "-2d"})
    assert [(bucket["count"], bucket["complete"]) for bucket in older["buckets"]] == [(0, False)]


async def test_an_empty_time_has_buckets_of_zero(server: RunningServer) -> None:
    page = await count(server, rules=[{"rule": "tea"}], every="day", **{"from": "-2d", "to": "-1d"})
    assert all((bucket["count"], bucket["counts"], bucket["complete"]) == (0, [], True) for bucket in page["buckets"])
    assert len(page["buckets"]) in (1, 2)  # a day, of which UTC midnight makes two parts


async def test_a_rule_in_the_place_of_a_list_is_refused_with_what_rules_may_be(server: RunningServer) -> None:
    _, answer = await server.call("POST", PATH, json={"rules": "tea", "from": "-1h"})
    assert answer["error"]["message"] == "`rules` must be saved or an array"


async def test_an_invalid_question_is_refused(server: RunningServer, subtests: pytest.Subtests) -> None:
    """The error names the parameter. A `next` serves only the question that it answers."""
    tea = [{"rule": "tea"}]
    invalid = "invalid_parameter"
    cases: list[tuple[Json, str, str]] = [
        ({"from": "-1h"}, "missing_parameter", "rules"),
        ({"rules": tea}, "missing_parameter", "from"),
        ({"rules": [], "from": "-1h"}, invalid, "rules"),
        ({"rules": "all", "from": "-1h"}, invalid, "rules"),
        ({"rules": [{"rule": "tea ("}], "from": "-1h"}, invalid, "rules[0].rule"),
        ({"rules": [*tea, {"rule": "from:nobody_1"}], "from": "-1h"}, invalid, "rules[1].rule"),
        ({"rules": tea, "from": "yesterday"}, "invalid_cursor", "from"),
        ({"rules": tea, "from": "2999-01-01T00:00:00Z"}, invalid, "from"),
        ({"rules": tea, "from": "-1h", "to": "2999-01-01T00:00:00Z"}, invalid, "to"),
        ({"rules": tea, "from": "-1h", "to": "-2h"}, invalid, "to"),
        ({"rules": tea, "from": "-1h", "every": "week"}, invalid, "every"),
        ({"rules": tea, "from": "-1h", "next": "x"}, invalid, "next"),
        ({"rules": tea, "from": "-1h", "next": "W10="}, invalid, "next"),
        ({"rules": tea, "from": "-1h", "next": "é"}, invalid, "next"),
        ({"rules": tea, "from": "-1h", "sum": True}, "unknown_parameter", "sum"),
    ]
    for body, code, param in cases:
        with subtests.test(body=body):
            assert await refused(server, **body) == (400, code, param)
    question = {"rules": tea, "from": "-100d", "every": "minute"}
    more = (await count(server, **question))["next"]
    assert more
    for change in ({"every": "hour"}, {"rules": [{"rule": "milk"}]}, {"rules": [{"rule": "tea", "tag": "t"}]}):
        with subtests.test(change=change):
            assert await refused(server, **question | change, next=more) == (400, invalid, "next")
    digest, *rest = json.loads(base64.urlsafe_b64decode(more))
    late = [digest, counts.MAX_MS - 1, counts.MAX_MS, *rest[2:]]  # in the future, as no answer has it
    forged = base64.urlsafe_b64encode(json.dumps(late).encode()).decode()
    for text in (more[:-8], more[8:], forged):
        assert (await refused(server, **question, next=text))[::2] == (400, "next")


async def test_posts_that_the_caller_may_not_see_do_not_count(server: RunningServer) -> None:
    """A protected author's posts count for the author alone."""
    await server.call("PATCH", "/v1/users/me", json={"protected": True})
    await post(server, message="tea")
    question: Json = {"rules": [{"rule": "tea"}], "every": "day", "from": "-1h"}
    assert sum(bucket["count"] for bucket in (await count(server, **question))["buckets"]) == 1
    owner = server.uid
    body = {"login": "other", "name": "O", "email": "other@example.com", "password": "correct horse"}
    _, other = await server.call("POST", "/v1/users", json=body)
    server.uid = other["id"]
    assert sum(bucket["count"] for bucket in (await count(server, **question))["buckets"]) == 0
    server.uid = owner
