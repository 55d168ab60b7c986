"""Twenty tasks do random actions on the same users and statuses, and the data stays consistent."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import pytest

from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store
from tests.property.model import audit
from tests.property.model.crowd import Crowd
from tests.property.model.moves import MOVES, TAGS, Move
from tests.property.model.snapshot import Snapshot
from tests.property.model.walk import outcome
from tests.redis_process import RedisProcess
from tests.stream_server.store.scenes import items_of
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.extended, pytest.mark.timeout(3600)]  # for the long form

TASKS = 20
STEPS = 30
SEEDS = 2
LONG = 200

LARGE = 5_000
"""More statuses than all the tasks can post."""

ALL_MOVES = MOVES | {"reinstate": (8, MOVES["reinstate"][1])}  # otherwise most users are suspended at the end
GROWING = {
    name: ALL_MOVES[name]
    for name in (
        "post", "burst", "reply", "repost", "quote", "follow", "follow_listed", "list_create", "list_add", "like",
    )
}  # fmt: skip
"""Actions that remove nothing. After them a short timeline has the newest of its statuses."""

ALL = PageRequest(count=200)


async def _crowd(
    server: RedisProcess, moves: Mapping[str, tuple[int, Move]], seed: int, sizes: SizeLimits
) -> list[str]:
    """Run concurrent actions. Returns what is wrong afterwards."""
    raw = server.client()
    raw.flushall()
    store = Store(server.url, size_limits=sizes, timeout_seconds=PATIENCE)
    try:
        await store.open()
        crowd = Crowd(store, raw)
        await crowd.begin()
        await crowd.run(moves, seed, tasks=TASKS, steps=STEPS)
        assert crowd.done > TASKS * STEPS / 5, "most actions were refused, so the test checked little"
        held = Snapshot(raw)
        wrong = audit.complaints(held, await crowd.journal_of())
        if moves is ALL_MOVES and sizes.timeline_max < LARGE:
            return [*wrong, *audit.too_long(held, sizes.timeline_max), *[one async for one in _zombies(crowd, held)]]
        return [*wrong, *audit.missing(held, sizes.timeline_max), *[one async for one in _zombies(crowd, held)]]
    finally:
        await store.close()
        raw.close()


async def _zombies(crowd: Crowd, held: Snapshot) -> AsyncIterator[str]:
    """Deleted statuses that any read shows."""
    times = crowd.store.timelines
    alive = held.of("status").keys()
    for viewer in crowd.people:
        asked = {
            "home": times.read_home(viewer, ALL), "mentions": times.read_mentions(viewer, ALL),
            "favorites": times.read_favorites(viewer, ALL),
            **{f"profile {uid}": times.read_profile(viewer, uid, ALL) for uid in crowd.people},
            **{f"liked {uid}": times.read_liked(viewer, uid, ALL) for uid in crowd.people},
            **{f"tag {tag}": times.read_tag(viewer, tag, ALL) for tag in TAGS},
            **{f"list {one}": times.read_list(viewer, one, ALL) for one in crowd.lists},
            **{f"group {one}": times.read_group(viewer, one, ALL) for one in crowd.groups},
        }  # fmt: skip
        for name, ask in asked.items():
            page, _ = await outcome(ask)
            shown = {str(json.loads(one)["id"]) for one in items_of(page)} if page is not None else set()
            if shown - alive:
                yield f"{name}, read by {viewer}, shows {shown - alive}, which are gone"


def _try(server: RedisProcess, moves: Mapping[str, tuple[int, Move]], seed: int, sizes: SizeLimits) -> None:
    wrong = asyncio.run(_crowd(server, moves, seed, sizes))
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong[:20])


def test_concurrent_actions_leave_consistent_data(private_redis: RedisProcess, full: bool) -> None:  # noqa: FBT001 - a fixture
    for seed in range(LONG if full else SEEDS):
        _try(private_redis, ALL_MOVES, seed, SizeLimits(timeline_max=LARGE, fanout_batch_size=2))


SHORT = SizeLimits(timeline_max=8, fanout_batch_size=2, adds_per_trim=1)
"""Short timelines. Each addition trims its timeline, so that its length has an exact bound."""


def test_concurrent_actions_leave_consistent_short_timelines(private_redis: RedisProcess, full: bool) -> None:  # noqa: FBT001 - a fixture
    for seed in range(LONG if full else SEEDS):
        _try(private_redis, ALL_MOVES, seed, SHORT)


def test_concurrent_additions_leave_the_newest_in_short_timelines(private_redis: RedisProcess, full: bool) -> None:  # noqa: FBT001 - a fixture
    for seed in range(LONG if full else SEEDS):
        _try(private_redis, GROWING, seed, SHORT)
