"""Timelines that are trimmed now and then: bounded, and never shown beyond their maximum."""

import json
from typing import Any

import pytest

from stream_server.store import keys
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import ids, items_of, read_pages

CAP = 6


SIZES = SizeLimits(timeline_max=CAP, step_timelines=0)


def _let_one_addition_trim_in(adds: int, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = store.job_runner._size_limits._replace(adds_per_trim=adds)
    monkeypatch.setattr(store.job_runner, "_size_limits", limits)


def _length(raw: Any, uid: str) -> int:
    return int(raw.zcard(keys.home_timeline(uid)))


async def _posts(people: People, author: str, count: int) -> list[str]:
    """Post so many statuses. Returns their ids, newest first."""
    made = [(await people.status(author, f"{number}"))["id"] for number in range(count)]
    return made[::-1]


async def test_a_timeline_that_is_too_long_shows_its_newest_statuses(
    store: Store, people: People, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _let_one_addition_trim_in(10**12, store, monkeypatch)
    ada = await people.user("ada")
    posted = await _posts(people, ada, CAP + 5)
    assert _length(raw, ada) == CAP + 5, "the timeline is longer than its maximum"
    for count in (2, 4, CAP, CAP + 1):
        pages = await read_pages(lambda wanted: store.timelines.read_home(ada, wanted), count)
        assert [each for page in pages for each in ids(page)] == posted[:CAP]
    ranked = await store.timelines.read_home_by_importance(ada, PageRequest(count=CAP + 5))
    assert set(ids(ranked)) == set(posted[:CAP])
    assert await store.repair.run(fix=False) == []


async def test_a_page_upwards_begins_within_the_maximum(
    store: Store, people: People, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _let_one_addition_trim_in(10**12, store, monkeypatch)
    ada = await people.user("ada")
    older = await _posts(people, ada, 4)
    _, page = await read_pages(lambda wanted: store.timelines.read_home(ada, wanted), 2)
    newer = await _posts(people, ada, CAP + 2)
    assert _length(raw, ada) == len(older) + len(newer)
    upwards = await store.timelines.read_home(ada, PageRequest(count=2, after=page.prev))
    assert ids(upwards) == newer[:CAP][-2:], "the lowest two of those that the timeline shows"


async def test_a_trim_removes_all_beyond_the_maximum(
    store: Store, people: People, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = await people.users(2)
    await store.follows.follow(bob, ada, new_key())
    _let_one_addition_trim_in(10**12, store, monkeypatch)
    await _posts(people, ada, CAP + 5)
    _let_one_addition_trim_in(1, store, monkeypatch)
    status = json.loads(items_of(await store.timelines.read_home(bob, PageRequest(count=1)))[0])["id"]
    await people.status(ada, "the last")
    assert (_length(raw, ada), _length(raw, bob)) == (CAP, CAP)
    assert status.encode() in raw.zrange(keys.home_timeline(bob), 0, -1)


@pytest.mark.parametrize("step_ms", [1, 7, 1000, 3_600_000])
async def test_every_timeline_is_trimmed_soon_whatever_the_rhythm_of_its_statuses(store: Store, step_ms: int) -> None:
    for uid in ("375", "376"):
        key, longest, since = keys.home_timeline(uid), 0, 0
        for number in range(5000):
            status_id = str((90_000_000_000 + number * step_ms) * 4096)
            since = 0 if store.job_runner._is_trimmed_by(key, status_id) else since + 1
            longest = max(longest, since)
        assert 32 < longest < 512
