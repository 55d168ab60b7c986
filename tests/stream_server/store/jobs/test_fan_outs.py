"""The fan-out of a new status: no hash until a worker claims it, or until a reader leaves the author."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stream_server.store.jobs.queue import NO_HASH, ClaimedJob, PassResult
from stream_server.store.redis.scripts import JOB_GRACE_MS
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import (
    BY_JOBS,
    DUE,
    JOB,
    Interruption,
    Killed,
    check_timelines,
    drain,
    home,
    make_due,
    nothing,
)
from tests.stream_server.store.people import People, new_key

Meanwhile = Callable[[Store, "Scene"], Awaitable[object]]


class Scene:
    """An author with a follower and on a list, and a status whose request died before the fan-out."""

    def __init__(self, author: str, follower: str, list_id: str, status: str) -> None:
        self.author, self.follower, self.list_id, self.status = author, follower, list_id, status
        self.job = f"status-{status}"


SIZES = BY_JOBS


@pytest.fixture
async def scene(store: Store, people: People, raw: Any) -> Scene:
    author, follower = await people.users(2)
    await store.follows.follow(follower, author, new_key())
    list_id = json.loads(await store.lists.create(follower, "friends", "", False, new_key()))["id"]
    await store.lists.add_member(follower, list_id, author, new_key())
    exchange = store._redis.run_pipeline
    Interruption(store, 2, "before", nothing, dies=True)
    with pytest.raises(Killed):
        await people.status(author)
    store._redis.run_pipeline = exchange  # type: ignore[method-assign]  # back from the dead
    (status,) = raw.zrange("{core}:profile:" + author, 0, -1)
    return Scene(author, follower, list_id, status.decode())


def _hashes(raw: Any) -> list[str]:
    return [name.decode().removeprefix(JOB) for name in raw.keys(JOB + "*")]


async def test_a_fan_out_is_one_member_of_the_queue_that_earlier_versions_never_find_due(
    store: Store, scene: Scene, raw: Any
) -> None:
    assert raw.zrange(DUE, 0, -1, withscores=True) == [(scene.job.encode(), float(scene.status))]
    assert _hashes(raw) == []
    now = raw.time()[0] * 1000
    assert int(scene.status) > now + 365 * 86_400_000, "an earlier version compares the score with its clock"
    assert raw.hget("{core}:user:" + scene.author, "busy") is None
    assert (await store.job_queue.measure_depth()).total == 1


async def test_a_worker_claims_it_once_the_request_has_surely_ended(store: Store, scene: Scene, raw: Any) -> None:
    assert await store.job_queue.claim(4) == [], "the request may still be running"
    assert (await store.job_queue.measure_depth()).due == 0
    older = str(int(scene.status) - (JOB_GRACE_MS + 1000) * 4096)
    raw.zadd(DUE, {scene.job: older})
    assert (await store.job_queue.measure_depth()).due == 1
    (claimed,) = await store.job_queue.claim(4)
    assert (claimed.id, _hashes(raw)) == (scene.job, [scene.job])
    assert claimed.fence != NO_HASH
    assert await store.job_runner.run_pass(claimed) == "done"
    assert home(raw, scene.follower) == home(raw, scene.author) == {scene.status}
    await drain(store, raw)
    check_timelines(raw)


async def test_the_request_of_a_claimed_fan_out_comes_too_late(store: Store, scene: Scene, raw: Any) -> None:
    make_due(raw)
    (claimed,) = await store.job_queue.claim(4)
    late = PassResult(ClaimedJob(scene.job, NO_HASH))
    assert await store.job_queue.advance(late) == ["stale"]
    assert _hashes(raw) == [scene.job]
    assert await store.job_runner.run_pass(claimed) == "done"
    assert await store.job_queue.advance(late) == ["stale"]


async def _unfollow(store: Store, scene: Scene) -> None:
    await store.follows.unfollow(scene.follower, scene.author, new_key())


async def _block(store: Store, scene: Scene) -> None:
    await store.blocks.block(scene.follower, scene.author, new_key())


async def _remove_from_list(store: Store, scene: Scene) -> None:
    await store.lists.remove_member(scene.follower, scene.list_id, scene.author, new_key())


async def _delete_status(store: Store, scene: Scene) -> None:
    await store.statuses.delete(scene.author, scene.status, new_key())


LEAVING: list[Meanwhile] = [_unfollow, _block, _remove_from_list, _delete_status]


@pytest.mark.parametrize("leave", LEAVING)
async def test_a_reader_who_leaves_takes_the_fan_out_from_its_request(
    store: Store, scene: Scene, raw: Any, leave: Meanwhile
) -> None:
    await leave(store, scene)
    assert await store.job_queue.advance(PassResult(ClaimedJob(scene.job, NO_HASH))) == ["stale"]
    assert scene.job in _hashes(raw)
    await drain(store, raw)
    check_timelines(raw)


async def test_a_deleted_list_takes_the_fan_out_from_its_request(store: Store, scene: Scene, raw: Any) -> None:
    await store.lists.delete(scene.follower, scene.list_id, new_key())
    raw.zadd(DUE, {f"drop-list-{scene.list_id}": 0})
    (dropping,) = await store.job_queue.claim(1)
    await store.job_runner.run_pass(dropping)
    assert await store.job_queue.advance(PassResult(ClaimedJob(scene.job, NO_HASH))) == ["stale"]
    await drain(store, raw)
    check_timelines(raw)


async def test_others_who_leave_do_not_touch_the_fan_out(store: Store, people: People, scene: Scene, raw: Any) -> None:
    other = await people.user("other")
    await store.follows.follow(scene.follower, other, new_key())
    await store.follows.unfollow(scene.follower, other, new_key())
    assert await store.job_queue.advance(PassResult(ClaimedJob(scene.job, NO_HASH))) == ["done"]


async def test_a_waiting_fan_out_is_no_fault(store: Store, scene: Scene) -> None:
    assert scene.status
    assert await store.repair.run(fix=False) == []
