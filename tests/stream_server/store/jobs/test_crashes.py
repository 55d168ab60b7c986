"""Processes that die, or that other writes overtake, between any two commands: all timelines are right in the end."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import pytest

from stream_server.errors import NotFound
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.stream_server.store.job_queue import (
    Interruption,
    Killed,
    RedisDump,
    check_timelines,
    drain,
    job_workers,
    make_due,
)
from tests.stream_server.store.people import People, new_key, open_store
from tests.tiers import sample
from tests.waiting import PATIENCE

SIZES = SizeLimits(fanout_batch_size=3, step_timelines=0)

WIDE = SizeLimits(fanout_batch_size=10, step_timelines=0)
"""One pass handles all followers and lists of the author, within the call."""

STEP = SizeLimits(fanout_batch_size=10)
"""The script of the write changes all timelines itself."""

MOST = 60
"""Limit of round trips, so that a test without an end fails."""


class Scene(NamedTuple):
    """An author with five followers, an older status, a list with the author, and a user who may follow later."""

    store: Store
    raw: Any
    author: str
    followers: list[str]
    list_id: str
    old: str
    newcomer: str

    @property
    def leaver(self) -> str:
        """A follower from the middle of the set."""
        return self.followers[1]


async def _make_scene(store: Store, raw: Any) -> Scene:
    raw.flushall()
    people = People(store)
    author, *others = await people.users(7)
    for follower in others[:5]:
        await store.follows.follow(follower, author, new_key())
    made = await store.lists.create(others[0], "friends", "", False, new_key())
    list_id = _id(made)
    await store.lists.add_member(others[0], list_id, author, new_key())
    old = (await people.status(author, "old"))["id"]
    await people.status(others[1], "of another")
    await drain(store, raw)
    check_timelines(raw)
    return Scene(store, raw, author, others[:5], list_id, old, others[5])


def _id(made: Any) -> str:
    return str(json.loads(made)["id"])


async def _unless_gone(action: "Action", scene: Scene) -> None:
    with suppress(NotFound):
        await action(scene)


async def nothing(scene: Scene) -> None:
    """No other write."""


async def leaves(scene: Scene) -> None:
    await scene.store.follows.unfollow(scene.leaver, scene.author, new_key())


async def leaves_and_returns(scene: Scene) -> None:
    await leaves(scene)
    await scene.store.follows.follow(scene.leaver, scene.author, new_key())


async def deletes(scene: Scene) -> None:
    for status in scene.raw.zrange("{core}:profile:" + scene.author, 0, -1):
        await scene.store.statuses.delete(scene.author, status.decode(), new_key())


async def follows(scene: Scene) -> None:
    await scene.store.follows.follow(scene.newcomer, scene.author, new_key())


async def removes_from_list(scene: Scene) -> None:
    await scene.store.lists.remove_member(scene.followers[0], scene.list_id, scene.author, new_key())


async def deletes_list(scene: Scene) -> None:
    await scene.store.lists.delete(scene.followers[0], scene.list_id, new_key())


async def posts(scene: Scene) -> None:
    await People(scene.store).status(scene.author, "new")


Action = Callable[[Scene], Awaitable[None]]

WRITES: dict[str, Action] = {
    "post": posts,
    "delete": deletes,
    "follow": follows,
    "unfollow": leaves,
    "leave and return": leaves_and_returns,
    "delist": removes_from_list,
    "list_delete": deletes_list,
}
MEANWHILE: dict[str, Action] = {
    "nothing": nothing,
    "leaves": leaves,
    "leaves_and_returns": leaves_and_returns,
    "deletes": deletes,
    "follows": follows,
    "removes_from_list": removes_from_list,
    "deletes_list": deletes_list,
    "posts": posts,
}


@pytest.fixture
async def own(redis_url: str) -> AsyncIterator[Store]:
    async with open_store(redis_url, size_limits=SIZES) as store:
        yield store


@pytest.fixture
async def wide(redis_url: str) -> AsyncIterator[Store]:
    async with open_store(redis_url, size_limits=WIDE) as store:
        yield store


async def _interrupt_everywhere(
    own: Store, raw: Any, redis_url: str, write: Action, action: Action, *, inline: bool, sizes: SizeLimits = SIZES
) -> int:
    """Interrupt a write, or the job workers after it, at every command in every way.

    Returns the number of interruptions.
    """
    scene, interruptions = await _make_scene(own, raw), 0
    if not inline:
        await _orphaned(scene, redis_url, write)
    kept = RedisDump(raw)
    for dies, when in itertools.product((True, False), ("before", "half", "after")):
        for k in range(1, MOST):
            kept.restore()
            other = Store(redis_url, timeout_seconds=PATIENCE, size_limits=sizes)  # not opened: Redis knows the scripts
            interruption = Interruption(other, k, when, partial(_unless_gone, action, scene), dies=dies)
            with suppress(Killed, NotFound):  # another write was first
                await (write(scene._replace(store=other)) if inline else job_workers(other).run_until_empty())
            await other.close()
            await drain(own, raw)
            check_timelines(raw)
            if not interruption.fired:
                break
            interruptions += 1
        else:
            pytest.fail("the write does not end")
    return interruptions


async def _orphaned(scene: Scene, redis_url: str, write: Action) -> None:
    """Do the write in a process that dies before its first pass, and make its jobs due."""
    other = Store(redis_url, timeout_seconds=PATIENCE, size_limits=SIZES)
    with suppress(Killed):
        Interruption(other, 2, "before", partial(nothing, scene), dies=True)
        await write(scene._replace(store=other))
    await other.close()
    assert make_due(scene.raw)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("write", sample(WRITES, lambda write: write in {"post", "delete"}))
async def test_a_request_that_dies_or_is_overtaken_between_any_two_commands(
    own: Store, raw: Any, redis_url: str, write: str, meanwhile: str
) -> None:
    assert await _interrupt_everywhere(own, raw, redis_url, WRITES[write], MEANWHILE[meanwhile], inline=True)


@pytest.mark.parametrize("meanwhile", sample(MEANWHILE, lambda meanwhile: meanwhile == "leaves"))
@pytest.mark.parametrize(
    "write", [pytest.param(write, marks=[] if write == "post" else [pytest.mark.nightly]) for write in WRITES]
)
async def test_a_job_worker_that_dies_or_is_overtaken_between_any_two_commands(
    own: Store, raw: Any, redis_url: str, write: str, meanwhile: str
) -> None:
    assert await _interrupt_everywhere(own, raw, redis_url, WRITES[write], MEANWHILE[meanwhile], inline=False) >= 6


@pytest.mark.parametrize("meanwhile", sample(MEANWHILE, lambda meanwhile: meanwhile == "nothing"))
@pytest.mark.parametrize("write", ["post", "delete"])
async def test_a_pass_over_followers_and_lists_together_dies_or_is_overtaken(
    wide: Store, raw: Any, redis_url: str, write: str, meanwhile: str
) -> None:
    interruptions = _interrupt_everywhere(
        wide, raw, redis_url, WRITES[write], MEANWHILE[meanwhile], inline=True, sizes=WIDE
    )
    assert await interruptions == 2 * 3 * 2 or meanwhile != "nothing", "script, transaction: each may be the last"


@pytest.mark.parametrize("write", ["post", "delete", "follow"])
async def test_a_write_that_changes_all_timelines_itself_dies_or_is_overtaken(
    raw: Any, redis_url: str, write: str
) -> None:
    async with open_store(redis_url, size_limits=STEP) as own:
        found = await _interrupt_everywhere(own, raw, redis_url, WRITES[write], leaves, inline=True, sizes=STEP)
    assert found == 2 * 3, "one script"


async def ingests(scene: Scene) -> None:
    """A batch of another site: three posts, of which two fill a transaction, and one by a user whom nobody follows."""
    ingest = scene.store.ingest
    for uid in (scene.author, scene.newcomer):
        scene.raw.hset("{core}:subjects", f"of{uid}", uid)
    authors = (scene.author, scene.newcomer, scene.author)
    drafts = [(f"{number}", f"of{uid}", StatusDraft(message="new")) for number, uid in enumerate(authors)]
    _, timelines = await ingest.write([ingest.post(*draft, None) for draft in drafts])
    await timelines


@pytest.mark.parametrize("meanwhile", sample(MEANWHILE, lambda meanwhile: meanwhile == "leaves"))
async def test_a_batch_of_posts_dies_or_is_overtaken_between_any_two_commands(
    wide: Store, raw: Any, redis_url: str, meanwhile: str
) -> None:
    interruptions = _interrupt_everywhere(wide, raw, redis_url, ingests, MEANWHILE[meanwhile], inline=True, sizes=WIDE)
    assert await interruptions >= 2 * 3 * 3, "scripts, and two transactions"


@pytest.mark.parametrize("meanwhile", ["leaves", "leaves_and_returns", "removes_from_list"])
@pytest.mark.parametrize("write", [posts, ingests])
async def test_an_unfollow_during_the_fan_out_is_found_in_the_same_call(
    wide: Store, raw: Any, redis_url: str, write: Action, meanwhile: str
) -> None:
    scene = await _make_scene(wide, raw)
    other = Store(redis_url, timeout_seconds=PATIENCE, size_limits=WIDE)
    interruption = Interruption(other, 2, "before", partial(_unless_gone, MEANWHILE[meanwhile], scene), dies=False)
    await write(scene._replace(store=other))
    await other.close()
    assert interruption.fired
    check_timelines(raw)
