"""Timelines that the script of the write changes itself, and writes that keep their reply before anything else."""

import asyncio
import json
from typing import Any

import pytest

from stream_server.errors import InternalError, Unavailable
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits, load_scripts
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import (
    BY_JOBS,
    Interruption,
    Killed,
    check_timelines,
    drain,
    home,
    members,
    nothing,
)
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import ids

STEP, CAP = 4, 6
MOST_MERGED_IN_STEP = 300
LOG, DUE = "{core}:log", "{core}:due"


SIZES = SizeLimits(timeline_max=CAP, step_timelines=STEP)


async def _followed(store: Store, people: People, count: int) -> tuple[str, list[str]]:
    author, *followers = await people.users(count + 1)
    for follower in followers:
        await store.follows.follow(follower, author, new_key())
    return author, followers


async def test_one_script_posts_and_another_deletes(store: Store, people: People, raw: Any) -> None:
    author, (fan, *_) = await _followed(store, people, 2)
    list_id = json.loads(await store.lists.create(fan, "friends", "", False, new_key()))["id"]
    await store.lists.add_member(fan, list_id, author, new_key())
    round_trips = Interruption(store, 99, "before", nothing, dies=False)
    status = await people.status(author)
    assert members(raw, keys.list_timeline(list_id)) == home(raw, author) == home(raw, fan) == {status["id"]}
    await store.likes.like(fan, status["id"], new_key())
    await store.comments.create(fan, status["id"], "so true", new_key())
    await store.statuses.delete(author, status["id"], new_key())
    assert 99 - round_trips._k == 4
    assert home(raw, author) | home(raw, fan) | members(raw, keys.list_timeline(list_id)) == set()
    assert raw.keys("{core}:comment*") == raw.keys("{core}:like*") == raw.keys(DUE) == []


async def test_more_readers_than_one_step_changes_get_a_job(store: Store, people: People, raw: Any) -> None:
    author, followers = await _followed(store, people, STEP)
    kept, status = await people.status(author), await people.status(author)
    assert [uid for uid in followers if home(raw, uid) == {kept["id"], status["id"]}] == followers
    assert raw.hget("{core}:meta", "fence") is None, "a fan-out has a fence only if a worker claims it"
    await store.statuses.delete(author, status["id"], new_key())
    assert raw.hget("{core}:meta", "fence") == b"1", "a job cleaned up"
    check_timelines(raw)


async def test_a_delete_during_the_fan_out_of_another_server_takes_its_job(
    store: Store, people: People, raw: Any, redis_url: str
) -> None:
    author, (fan, *_) = await _followed(store, people, 1)
    async with open_store(redis_url, size_limits=BY_JOBS) as other:
        Interruption(other, 2, "before", nothing, dies=True)
        with pytest.raises(Killed):
            await People(other).status(author)
    (status,) = members(raw, "{core}:profile:" + author)
    await store.statuses.delete(author, status, new_key())
    await drain(store, raw)
    assert home(raw, fan) == home(raw, author) == set()


async def test_a_timeline_that_cannot_be_written_gets_a_job(store: Store, people: People, raw: Any) -> None:
    author, (broken, fan) = await _followed(store, people, 2)
    raw.set(keys.home_timeline(broken), "no sorted set")
    kept, gone = await people.status(author, "one"), await people.status(author, "two")
    await store.statuses.delete(author, gone["id"], new_key())
    assert home(raw, author) == home(raw, fan) == {kept["id"]}
    assert raw.zrange(DUE, 0, -1) == [f"refill-home-{broken}".encode()]
    raw.delete(keys.home_timeline(broken))
    await drain(store, raw)
    check_timelines(raw)


async def test_a_script_trims_timelines_now_and_then(store: Store, people: People, raw: Any) -> None:
    author, (fan, *_) = await _followed(store, people, 1)
    made = await asyncio.gather(*(people.status(author, f"{number}") for number in range(400)))
    newest = sorted((status["id"] for status in made), key=int, reverse=True)[:CAP]
    for uid in (author, fan):
        assert raw.zcard(keys.home_timeline(uid)) < 400
        assert ids(await store.timelines.read_home(uid, PageRequest(count=CAP))) == newest


async def test_a_follow_merges_in_the_same_step(store: Store, people: People, raw: Any) -> None:
    ada, bob = await people.users(2)
    posted = [(await people.status(ada, f"{number}"))["id"] for number in range(CAP + 2)]
    await store.follows.follow(bob, ada, new_key())
    assert home(raw, bob) == set(posted[-CAP:])
    assert raw.hget("{core}:meta", "fence") is None, "no job was made"


async def test_a_follow_of_an_author_with_many_statuses_leaves_a_job(redis_url: str, people: People, raw: Any) -> None:
    ada, bob = await people.users(2)
    many = {str(number): number for number in range(10**14, 10**14 + MOST_MERGED_IN_STEP + 1)}
    raw.zadd("{core}:profile:" + ada, many)
    await people.store.follows.follow(bob, ada, new_key())
    assert home(raw, bob) == set(list(many)[-CAP:]), "a timeline has fewer, so it is one step"
    async with open_store(redis_url, size_limits=SizeLimits()) as usual:
        await usual.follows.unfollow(bob, ada, new_key())
        fences = int(raw.hget("{core}:meta", "fence"))
        await usual.follows.follow(bob, ada, new_key())
    assert home(raw, bob) == set(many)
    assert int(raw.hget("{core}:meta", "fence")) == fences + 1


async def test_a_cluster_gets_scripts_without_the_names_of_timelines() -> None:
    for script in load_scripts(SizeLimits(step_timelines=0)).values():
        assert "'home:'" not in script.text
        assert "'timeline:'" not in script.text
    assert "'home:'" in load_scripts(SizeLimits())["status_post"].text
    clustered = Store("redis+cluster://127.0.0.1:1", timeout_seconds=1)
    assert clustered._scripts.size_limits.step_timelines == 0
    await clustered.close()


async def test_an_entry_that_the_log_refuses_keeps_no_reply(store: Store, people: People, raw: Any) -> None:
    author = await people.user("ada")
    key = IdempotencyKey.from_client(author, "k", b"post")
    raw.xadd(LOG, {"n": "1"}, id="9999999999999-0")
    with pytest.raises((InternalError, Unavailable)):
        await store.statuses.create(author, StatusDraft(message="hi"), key)
    assert raw.keys("{core}:request:*k*") == raw.keys("{core}:status:*") == []
    raw.delete(LOG)
    assert json.loads(await store.statuses.create(author, StatusDraft(message="hi"), key))["message"] == "hi"
