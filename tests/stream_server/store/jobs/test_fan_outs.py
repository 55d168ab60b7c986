"""The fan-out of a new status: no hash until a worker claims it, or until a reader leaves the author."""

import json
from typing import Any

import pytest

from stream_server.store.jobs.queue import NO_HASH, ClaimedJob, PassResult
from stream_server.store.redis.script_settings import JOB_GRACE_MS
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


async def test_others_who_leave_do_not_touch_it(store: Store, people: People, scene: Scene) -> None:
    other = await people.user("other")
    await store.follows.follow(scene.follower, other, new_key())
    await store.follows.unfollow(scene.follower, other, new_key())
    assert await store.job_queue.advance(PassResult(ClaimedJob(scene.job, NO_HASH))) == ["done"]
