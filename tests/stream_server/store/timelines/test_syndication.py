"""The scenarios of chapter 8 with five timelines per pass: create, follow, syndicate, refill, clean up."""

from typing import Any

import pytest

from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import (
    check_timelines,
    drain,
    forget_scripts_before_transactions,
    home,
    members,
)
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import items_of
from tests.waiting import PATIENCE

PASS, CAP = 5, 20


SIZES = SizeLimits(timeline_max=CAP, fanout_batch_size=PASS, step_timelines=0)


async def _followed(store: Store, people: People, count: int) -> tuple[str, list[str]]:
    """Create an author and ``count`` followers, in this order of following."""
    author, *others = await people.users(count + 1)
    for follower in others:
        await store.follows.follow(follower, author, new_key())
    return author, others


def _having(raw: Any, people: list[str], status: dict[str, Any]) -> list[str]:
    return [uid for uid in people if status["id"] in home(raw, uid)]


async def test_follow_merges_and_unfollow_removes_in_the_same_call(store: Store, people: People, raw: Any) -> None:
    ada, bob = await people.users(2)
    ids = [(await people.status(ada, f"{i}"))["id"] for i in range(CAP + 3)]
    await store.follows.follow(bob, ada, new_key())
    assert home(raw, bob) == set(ids[-CAP:])
    assert raw.zcard("{core}:due") == 0
    await store.follows.unfollow(bob, ada, new_key())
    assert home(raw, bob) == set()
    await drain(store, raw)
    assert home(raw, bob) == set()


async def test_syndicate_pages_over_followers_of_one_millisecond(store: Store, people: People, raw: Any) -> None:
    author, followers = await _followed(store, people, 13)
    raw.zadd("{core}:followers:" + author, dict.fromkeys(followers, 5))
    status = await people.status(author)
    first = sorted(followers)[:PASS]
    assert set(_having(raw, followers, status)) == set(first)
    await store.follows.unfollow(first[-1], author, new_key())
    await drain(store, raw)
    assert set(_having(raw, followers, status)) == set(followers) - {first[-1]}
    check_timelines(raw)


async def test_refill_a_timeline_that_an_unfollow_left_short(
    store: Store, people: People, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = store.job_runner._size_limits._replace(adds_per_trim=1)
    monkeypatch.setattr(store.job_runner, "_size_limits", limits)
    reader, loud, *others = await people.users(64)
    for other in others:
        await people.status(other, "older")
    kept = [(await people.status(other, "newer"))["id"] for other in others][-CAP:]
    for other in [*others, loud]:
        await store.follows.follow(reader, other, new_key())
    raw.zadd("{core}:following:" + reader, dict.fromkeys(others, 7))
    flood = [(await people.status(loud, "flood"))["id"] for _ in range(CAP - 2)]
    assert home(raw, reader) == {*kept[-2:], *flood}
    await store.follows.unfollow(reader, loud, new_key())
    assert home(raw, reader) == set(kept[-2:])
    assert raw.zcard("{core}:due") == 1
    await drain(store, raw)
    assert home(raw, reader) == set(kept)


async def test_refill_is_not_needed_at_three_quarters(store: Store, people: People, raw: Any) -> None:
    reader, quiet, other = await people.users(3)
    await people.status(quiet)
    for _ in range(CAP * 3 // 4):
        await people.status(other)
    for each in (quiet, other):
        await store.follows.follow(reader, each, new_key())
    await store.follows.unfollow(reader, quiet, new_key())
    assert raw.zcard("{core}:due") == 0


async def test_clean_up_removes_a_deleted_status_and_all_that_depends_on_it(
    store: Store, people: People, raw: Any
) -> None:
    author, followers = await _followed(store, people, 13)
    status = await people.status(author)
    await drain(store, raw)
    for fan in followers:
        await store.likes.like(fan, status["id"], new_key())
        await store.comments.create(fan, status["id"], StatusDraft(message="so true").message, new_key())
    await people.status(followers[0], "I agree", in_reply_to=status["id"])
    await people.status(followers[1], origin=status["id"], message="")
    await store.statuses.delete(author, status["id"], new_key())
    assert _having(raw, followers, status) == followers[PASS:]
    await drain(store, raw)
    check_timelines(raw)
    assert raw.keys("{core}:comment:*") == []
    assert not any(members(raw, "{core}:liked:" + fan) for fan in followers)
    gone = [f"{{core}}:{kind}:{status['id']}" for kind in ("status", "likes", "comments", "replies", "reposts")]
    assert raw.exists(*gone) == 0


async def test_clean_up_overtakes_a_running_fan_out(store: Store, people: People, raw: Any) -> None:
    author, followers = await _followed(store, people, 13)
    status = await people.status(author)
    await store.statuses.delete(author, status["id"], new_key())
    await drain(store, raw)
    assert _having(raw, [author, *followers], status) == []


@pytest.mark.extended
async def test_ten_thousand_followers_get_a_status_once(people: People, raw: Any, redis_url: str) -> None:
    store = Store(redis_url, timeout_seconds=PATIENCE)
    author = await people.user("star")
    count = 10_000
    followers = [str(1000 + number) for number in range(count)]
    raw.zadd("{core}:followers:" + author, {uid: 1 + number // 3000 for number, uid in enumerate(followers)})
    status = await People(store).status(author)

    def having() -> list[str]:
        pipe = raw.pipeline(transaction=False)
        for uid in followers:
            pipe.zscore(f"home:{{{uid}}}", status["id"])
        return [uid for uid, score in zip(followers, pipe.execute(), strict=True) if score is not None]

    first = sorted(followers, key=lambda uid: (1 + (int(uid) - 1000) // 3000, uid))[:1000]
    assert set(having()) == set(first)
    await drain(store, raw)
    assert having() == followers
    await store.statuses.delete(author, status["id"], new_key())
    await drain(store, raw)
    assert having() == []
    await store.close()


async def test_a_timeline_that_cannot_be_written_gets_a_job_and_the_others_get_the_status(
    store: Store, people: People, raw: Any
) -> None:
    author, followers = await _followed(store, people, 3)
    raw.set(f"home:{{{followers[1]}}}", "no sorted set")
    status = await people.status(author)
    assert _having(raw, [author, followers[0], followers[2]], status) == [author, followers[0], followers[2]]
    assert raw.zrange("{core}:due", 0, -1) == [f"refill-home-{followers[1]}".encode()]
    raw.delete(f"home:{{{followers[1]}}}")
    await drain(store, raw)
    check_timelines(raw)


async def test_a_redis_that_forgot_the_scripts_finishes_the_job(store: Store, people: People, raw: Any) -> None:
    author, followers = await _followed(store, people, 3)
    forget_scripts_before_transactions(store, raw)
    status = await people.status(author)
    assert _having(raw, [author, *followers], status) == [author, *followers]
    assert raw.zcard("{core}:due") == 0


async def test_a_page_is_full_although_some_of_its_ids_are_not_shown(store: Store, people: People, raw: Any) -> None:
    reader, ada, bob = await people.users(3)
    for each in (ada, bob):
        await store.follows.follow(reader, each, new_key())
    seen = []
    for number in range(CAP // 2):
        seen.append((await people.status(ada, f"{number}"))["id"])
        await people.status(bob, f"{number}")
    await store.mutes.mute(reader, bob, new_key())
    zombie = int(seen[-1]) + 1
    raw.zadd(f"home:{{{reader}}}", {str(zombie): zombie})
    first = await store.timelines.read_home(reader, PageRequest(count=4))
    second = await store.timelines.read_home(reader, PageRequest(count=4, before=first.next))
    by_number = await store.timelines.read_home(reader, PageRequest(count=4, page=2))
    back = await store.timelines.read_home(reader, PageRequest(count=4, after=second.prev))
    expected = list(reversed(seen))
    assert [item.decode()[7:].partition('"')[0] for item in items_of(first)] == expected[:4]
    assert [item.decode()[7:].partition('"')[0] for item in items_of(second)] == expected[4:8]
    assert items_of(by_number) == items_of(second)
    assert items_of(back) == items_of(first)
