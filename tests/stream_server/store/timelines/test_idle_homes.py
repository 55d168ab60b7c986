"""Home timelines of users who do not come are not kept, and are complete when these users come back."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stream_server.errors import Unavailable
from stream_server.store import keys
from stream_server.store.jobs.queue import ClaimedJob
from stream_server.store.jobs.upkeep import IdleHomesLoop
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from stream_server.store.timelines.home_visits import REMEMBERED_SECONDS, SLACK_SECONDS
from tests.stream_server.store.job_queue import BY_JOBS, check_timelines, drain, home, job_workers, members, written
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.redis.budgets import budget
from tests.stream_server.store.scenes import ids

ASLEEP, VISITED, DUE = "{core}:asleep", "{core}:visited", "{core}:due"
DAY_MS = 86_400_000


def _begin(raw: Any) -> None:
    """Let the first round have been an hour ago, so that all servers know that there are rounds."""
    raw.hset("{core}:meta", "asleep", raw.time()[0] * 1000 - 3_600_000)


@pytest.fixture(params=[SizeLimits(), BY_JOBS._replace(fanout_batch_size=3)], ids=["in the script", "by jobs"])
async def store(redis_url: str, raw: Any, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    _begin(raw)
    async with open_store(redis_url, size_limits=request.param) as made:
        yield made


def _stay_away(raw: Any, *uids: str) -> None:
    """Let the last visit of these users be a week ago."""
    week_ago = raw.time()[0] * 1000 - 7 * DAY_MS
    raw.zadd(VISITED, dict.fromkeys(uids, week_ago))


async def _sleep(store: Store, raw: Any, *uids: str) -> None:
    """Let the home timelines of these users fall asleep, and remove them."""
    _stay_away(raw, *uids)
    assert await store.idle_homes.let_sleep(uids, 5 * 86_400) == len(uids)
    await job_workers(store).run_until_empty()
    assert not any(home(raw, uid) for uid in uids)


def _forget_visits(store: Store) -> None:
    """Let the process forget who has come, as after `REMEMBERED_SECONDS`."""
    store.home_visits._seen.clear()


async def _read(store: Store, uid: str) -> list[str]:
    return ids(await store.timelines.read_home(uid, PageRequest(count=100)))


async def test_a_sleeper_gets_nothing_and_finds_everything(store: Store, people: People, raw: Any) -> None:
    author, sleeper, *others = await people.users(7)
    for follower in (sleeper, *others):
        await store.follows.follow(follower, author, new_key())
    old = await people.status(author, "old")
    await _sleep(store, raw, sleeper, author)
    new, gone = await people.status(author, "new"), await people.status(author, "gone")
    await store.statuses.delete(author, gone["id"], new_key())
    await drain(store, raw)
    assert home(raw, sleeper) == home(raw, author) == set()
    assert home(raw, others[0]) == home(raw, others[-1]) == {old["id"], new["id"]}
    assert await store.repair.run(fix=False) == []
    assert await _read(store, sleeper) == [new["id"], old["id"]]
    ranked = await store.timelines.read_home_by_importance(author, PageRequest(count=9))
    assert set(ids(ranked)) == {old["id"], new["id"]}
    assert raw.zcard(ASLEEP) == raw.zcard(DUE) == 0
    newest = await people.status(author, "newest")
    await drain(store, raw)
    assert await _read(store, sleeper) == [newest["id"], new["id"], old["id"]]
    check_timelines(raw)


async def test_a_batch_of_another_site_passes_sleepers_over(store: Store, people: People, raw: Any) -> None:
    author, sleeper, fan = await people.users(3)
    for follower in (sleeper, fan):
        await store.follows.follow(follower, author, new_key())
    await _sleep(store, raw, sleeper)
    raw.hset("{core}:subjects", "a", author)
    _, timelines = await store.ingest.write([store.ingest.post("p", "a", StatusDraft(message="hi"), None)])
    await timelines
    assert (len(home(raw, fan)), home(raw, sleeper)) == (1, set())
    assert len(await _read(store, sleeper)) == 1


async def test_visits_are_recorded_once_a_day_and_cost_nothing_in_between(
    store: Store, people: People, raw: Any
) -> None:
    ada = await people.user("ada")
    asked, call = list[str](), store._scripts.call

    async def note(script: str, key: str, **arguments: Any) -> Any:
        asked.append(script)
        return await call(script, key, **arguments)

    store._scripts.call = note  # type: ignore[method-assign,assignment]  # what the test looks at
    now, visits = 0.0, store.home_visits
    visits.monotonic = lambda: now
    for _ in range(3):
        await _read(store, ada)
    assert asked.count("home_visit") == 1
    first = raw.zscore(VISITED, ada)
    assert abs(first - raw.time()[0] * 1000) < DAY_MS / 2
    now = REMEMBERED_SECONDS
    await _read(store, ada)
    assert asked.count("home_visit") == 2
    assert raw.zscore(VISITED, ada) == first, "the record is young"
    _stay_away(raw, ada)
    _forget_visits(store)
    await _read(store, ada)
    assert raw.zscore(VISITED, ada) >= first


async def test_nobody_falls_asleep_too_early(store: Store, people: People, raw: Any) -> None:
    ada, bob, carl = await people.users(3)
    for uid in (ada, bob, carl):
        await people.status(uid)
    assert await store.idle_homes.let_sleep([ada, bob], 0) == 0, "the time begins with the first round"
    assert raw.zrange(VISITED, 0, -1) == [ada.encode(), bob.encode()]
    now, slack_ms = raw.time()[0] * 1000, SLACK_SECONDS * 1000
    raw.zadd(VISITED, {ada: now - 5 * DAY_MS - slack_ms + 60_000, bob: now - 5 * DAY_MS - slack_ms})
    assert await store.idle_homes.let_sleep([ada, bob], 5 * 86_400) == 1
    assert raw.zrange(ASLEEP, 0, -1) == [bob.encode()]
    await drain(store, raw)


async def test_servers_have_time_to_learn_that_there_are_rounds(
    store: Store, people: People, raw: Any, redis_url: str
) -> None:
    ada = await people.user("ada")
    await people.status(ada)
    await drain(store, raw)
    raw.hdel("{core}:meta", "asleep")
    async with open_store(redis_url) as other:
        now = other.home_visits.monotonic()
        other.home_visits.monotonic = lambda: now
        _stay_away(raw, ada)
        assert await store.idle_homes.let_sleep([ada], 0) == 0
        assert len(await _read(other, ada)) == 1
        assert raw.zscore(VISITED, ada) < raw.time()[0] * 1000 - 6 * DAY_MS, "it does not record visits yet"
        now += REMEMBERED_SECONDS
        assert len(await _read(other, ada)) == 1
        assert raw.zscore(VISITED, ada) > raw.time()[0] * 1000 - DAY_MS, "it has learned to"
        _begin(raw)
        _stay_away(raw, ada)
        assert await store.idle_homes.let_sleep([ada], 0) == 1
    await drain(store, raw)


async def test_a_round_looks_at_all_home_timelines(store: Store, people: People, raw: Any) -> None:
    everyone = await people.users(8)
    for uid in everyone[:7]:
        await people.status(uid)
    await drain(store, raw)
    _stay_away(raw, *everyone)
    loop = IdleHomesLoop(store.idle_homes, 5.0)
    loop.page_pause_seconds = 0.0
    assert await store.idle_homes.lease.rest(60)
    assert not await store.idle_homes.lease.rest(60)
    await loop.run_round()
    assert loop.fallen == raw.zcard(ASLEEP) == 7, "one has no home timeline"
    await drain(store, raw)
    assert raw.keys(keys.home_timeline("*").replace("{*}", "*")) == []
    # A server of an earlier version adds a status to a timeline that is asleep.
    raw.zadd(keys.home_timeline(everyone[0]), {"7": 7})
    await loop.run_round()
    await drain(store, raw)
    assert (loop.fallen, home(raw, everyone[0])) == (7, set())


async def test_a_return_during_the_removal_waits_for_a_second_refill(store: Store, people: People, raw: Any) -> None:
    """The removal may still write after the first refill. So the timeline counts as complete only after a second."""
    ada = await people.user("ada")
    status = await people.status(ada)
    await drain(store, raw)
    _stay_away(raw, ada)
    assert await store.idle_homes.let_sleep([ada], 0) == 1
    (late,) = await store.job_queue.claim(1)
    late_pass = await store.job_queue.begin_pass(late)
    assert late_pass is not None
    with budget(0.3), pytest.raises(Unavailable):
        await _read(store, ada)
    raw.unlink(keys.home_timeline(ada))  # the late removal
    assert float(raw.zscore(ASLEEP, ada)) < 0
    await drain(store, raw)
    assert await _read(store, ada) == [status["id"]]
    check_timelines(raw)


async def test_a_return_that_dies_is_continued(store: Store, people: People, raw: Any, redis_url: str) -> None:
    ada = await people.user("ada")
    status = await people.status(ada)
    await drain(store, raw)
    await _sleep(store, raw, ada)
    assert await store._scripts.call("home_visit", keys.META, uid=ada, stale_ms=1) != []  # and the process dies
    assert await store._scripts.call("home_visit", keys.META, uid=ada, stale_ms=1) == [b""]
    async with open_store(redis_url, size_limits=store._scripts.size_limits) as other:
        reading = asyncio.create_task(_read(other, ada))
        await drain(store, raw)
        assert await reading == [status["id"]]
    check_timelines(raw)


async def test_a_return_whose_job_is_parked_starts_it_again(store: Store, people: People, raw: Any) -> None:
    ada = await people.user("ada")
    status = await people.status(ada)
    await drain(store, raw)
    await _sleep(store, raw, ada)
    job = f"refill-home-{ada}"
    (fence,) = await store._scripts.call("home_visit", keys.META, uid=ada, stale_ms=1)
    for _ in range(10):
        await store.job_queue.record_failure(ClaimedJob(job, fence.decode()))
    assert await store.job_queue.list_parked() == [job]
    with budget(0.3), pytest.raises(Unavailable):
        await _read(store, ada)  # the old job may still write
    await drain(store, raw)
    assert await _read(store, ada) == [status["id"]]


@pytest.mark.parametrize("seed", range(2))
async def test_sleeping_and_returning_among_other_writes_leaves_right_timelines(
    store: Store, people: People, raw: Any, seed: int
) -> None:
    """An oracle computes each home from the follows and profiles, in the end and at each return."""
    everyone = await people.users(6)
    posted: list[tuple[str, str]] = []

    async def live(source: random.Random) -> None:
        for _ in range(25):
            one, other = source.sample(everyone, 2)
            match source.randrange(8):
                case 0 | 1:
                    await store.follows.follow(one, other, new_key())
                case 2:
                    await store.follows.unfollow(one, other, new_key())
                case 3 | 4:
                    posted.append((one, (await people.status(one))["id"]))
                case 5 if posted:
                    author, status = posted.pop(source.randrange(len(posted)))
                    await store.statuses.delete(author, status, new_key())
                case 6:
                    _stay_away(raw, one)
                    await store.idle_homes.let_sleep([one], 5 * 86_400)
                case _:
                    _forget_visits(store)
                    with budget(0.2):
                        try:
                            await _read(store, one)
                        except Unavailable:
                            continue

    working = asyncio.create_task(job_workers(store).run(2))
    await asyncio.gather(*(live(random.Random(10 * seed + number)) for number in range(4)))
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert raw.exists(VISITED)
    await drain(store, raw)
    _forget_visits(store)
    for uid in everyone:
        expected = written(raw, members(raw, "{core}:following:" + uid) | {uid})
        assert set(await _read(store, uid)) == expected
    await drain(store, raw)
    check_timelines(raw)
    assert await store.repair.run(fix=False) == []


async def test_a_large_community_finds_its_newest_statuses(redis_url: str, people: People, raw: Any) -> None:
    cap = 10
    reader, *authors = await people.users(60)
    for author in authors:
        await people.store.follows.follow(reader, author, new_key())
    for author in authors:
        await people.status(author)
    async with open_store(redis_url, size_limits=SizeLimits(timeline_max=cap)) as store:
        await _sleep(store, raw, reader)
        page = await store.timelines.read_home(reader, PageRequest(count=30))
    everything = sorted(written(raw, set(authors)), key=int, reverse=True)
    assert ids(page) == everything[:cap]
