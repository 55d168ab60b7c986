"""Some timelines are on a server that is away: the others are written, and nothing is missing when it is back."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from stream_server.store import keys
from stream_server.store.jobs.queue import FAILURES_BEFORE_PARKING
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.job_queue import DUE, drain, job_workers, make_due, members
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.two_servers import DERIVED_DATABASE, derived_of, open_split

PAGE = 4


class Scene:
    """An author with followers, one of whose homes is away."""

    def __init__(self, store: Store, truth: Any, homes: Any) -> None:
        self.store, self.truth, self._homes = store, truth, homes
        self.people, self.derived = People(store), derived_of(store)
        self.author, self.away = "", ""
        self.followers: list[str] = []

    async def begin(self, followers: int) -> None:
        self.author, *self.followers = await self.people.users(followers + 1)
        for follower in self.followers:
            await self.store.follows.follow(follower, self.author, new_key())
        await drain(self.store, self.truth)
        first = self.truth.zrange("{core}:followers:" + self.author, 0, 0)[0].decode()  # it is on the first page
        self.away = first
        self.derived.silent = {keys.home_timeline(first)}

    async def post(self) -> str:
        return str((await self.people.status(self.author))["id"])

    def homes_with(self, status: str) -> set[str]:
        """The users who have a status on their homes."""
        return {uid for uid in self.everybody if status in members(self._homes, keys.home_timeline(uid))}

    @property
    def everybody(self) -> set[str]:
        return {self.author, *self.followers}

    async def run_jobs(self) -> int:
        """Let all jobs be due, and run each once. Returns the number of those left."""
        make_due(self.truth)
        await job_workers(self.store).run_until_empty()
        return int(self.truth.zcard(DUE))

    async def park(self) -> None:
        """Run jobs until they are parked."""
        for _ in range(FAILURES_BEFORE_PARKING + 2):
            await self.run_jobs()
        assert await self.store.job_queue.list_parked()


@pytest.fixture
async def scene(redis_url: str, redis_server: RedisProcess, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    async with open_split(redis_url, monkeypatch, size_limits=SizeLimits(fanout_batch_size=PAGE)) as store:
        with redis_server.client() as truth, redis_server.client() as homes:
            homes.select(DERIVED_DATABASE)
            yield Scene(store, truth, homes)


async def test_a_page_with_a_silent_home_does_not_hold_the_pages_behind_it(scene: Scene) -> None:
    await scene.begin(followers=3 * PAGE)
    status = await scene.post()
    await scene.run_jobs()
    assert scene.homes_with(status) == scene.everybody - {scene.away}
    assert scene.truth.hget("{core}:job:status-" + status, "again") == b"done"
    scene.derived.come_back()
    await drain(scene.store, scene.truth)
    assert scene.homes_with(status) == scene.everybody


async def test_a_job_does_not_start_again_while_a_server_is_known_to_be_away(scene: Scene) -> None:
    """It would write the homes that it has written, at each try."""
    await scene.begin(followers=3 * PAGE)
    await scene.post()
    await scene.run_jobs()
    refused = scene.derived.refused
    await scene.park()
    assert scene.derived.refused == refused


async def test_a_deleted_status_loses_its_likes_although_a_home_is_silent(scene: Scene) -> None:
    await scene.begin(followers=PAGE + 1)
    scene.derived.silent.clear()
    status = await scene.post()
    await drain(scene.store, scene.truth)
    await scene.store.likes.like(scene.followers[0], status, new_key())
    scene.derived.silent = {keys.home_timeline(scene.away)}
    await scene.store.statuses.delete(scene.author, status, new_key())
    await scene.run_jobs()
    assert scene.truth.exists("{core}:likes:" + status) == 0
    assert scene.homes_with(status) == {scene.away}
    scene.derived.come_back()
    await drain(scene.store, scene.truth)
    assert scene.homes_with(status) == set()


async def test_of_ingested_posts_only_those_with_silent_homes_wait(scene: Scene) -> None:
    ingest = scene.store.ingest
    lines = [ingest.user(name, "", {}) for name in ("a", "b", "reader")]
    lines += [ingest.change_relation("follow", "reader", "a", None)]
    results, follow_up = await ingest.write(lines)
    await follow_up
    uids = [result.id for result in results]  # type: ignore[union-attr]  # all are new
    scene.derived.silent = {keys.home_timeline(uids[2])}
    posts = [ingest.post(f"by-{name}", name, StatusDraft(message="hello"), None) for name in "ab"]
    posted, follow_up = await ingest.write(posts)
    await follow_up
    waits, done = (result.id for result in posted)  # type: ignore[union-attr]  # as above
    scene.followers = uids
    assert scene.homes_with(done) == {uids[1]}
    assert scene.homes_with(waits) == {uids[0]}
    assert scene.truth.zrange(DUE, 0, -1) == [f"status-{waits}".encode()]
    scene.derived.come_back()
    await drain(scene.store, scene.truth)
    assert scene.homes_with(waits) == {uids[0], uids[2]}


async def test_a_returned_server_gets_its_statuses_although_another_is_away(scene: Scene) -> None:
    await scene.begin(followers=3 * PAGE)
    back, gone = scene.away, scene.followers[-1]
    scene.derived.silent.add(keys.home_timeline(gone))
    status = await scene.post()
    await scene.park()
    assert scene.homes_with(status) == scene.everybody - {back, gone}
    scene.derived.silent.remove(keys.home_timeline(back))
    scene.derived.returned += 1
    await scene.store.job_queue.unpark_all()
    await scene.run_jobs()
    assert scene.homes_with(status) == scene.everybody - {gone}


async def test_a_follow_during_an_outage_is_done_after_it(scene: Scene) -> None:
    await scene.begin(followers=2)
    scene.derived.silent.clear()
    status = await scene.post()
    newcomer = await scene.people.user("newcomer")
    scene.followers.append(newcomer)
    scene.derived.silent = {keys.home_timeline(newcomer)}
    workers = job_workers(scene.store)
    await scene.store.follows.follow(newcomer, scene.author, new_key())
    await scene.park()
    assert newcomer not in scene.homes_with(status)
    scene.derived.come_back()
    await workers.unpark_after_outage()
    await drain(scene.store, scene.truth)
    assert newcomer in scene.homes_with(status)


async def test_the_expiry_leaves_out_timelines_that_are_away(scene: Scene) -> None:
    await scene.begin(followers=2)
    scene.derived.silent.clear()
    status = await scene.post()
    scene.derived.silent = {keys.home_timeline(scene.away)}
    await scene.store.expiry.forget([keys.home_timeline(uid) for uid in scene.everybody], int(status) + 1)
    assert scene.homes_with(status) == {scene.away}
