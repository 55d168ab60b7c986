"""Processes that die, or are overtaken, between any two commands: when no job is left, every timeline is right."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import pytest

from stream_server.errors import NotFound
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.queue import Doomed, Kept, Killed, check, drain, fresh, hurry, receivers
from tests.tiers import sample
from tests.waiting import PATIENCE

SIZES = SizeLimits(fanout_batch_size=3)

WIDE = SizeLimits(fanout_batch_size=10)
"""All followers and lists of the author are one pass, which is in the call."""

MOST = 60
"""More round trips than anything here takes: a test that would go on for ever fails."""


class Town(NamedTuple):
    """An author with followers, of whom one is on the brink, a status there before, and a list with the author."""

    store: Store
    raw: Any
    author: str
    followers: list[str]
    list_id: str
    old: str
    newcomer: str

    @property
    def fickle(self) -> str:
        """A follower of the middle: others stand before and behind."""
        return self.followers[1]


async def _town(store: Store, raw: Any) -> Town:
    raw.flushall()
    people = People(store)
    author, *others = await people.users(7)
    for follower in others[:5]:
        await store.follows.follow(follower, author, fresh())
    made = await store.lists.create(others[0], "friends", "", False, fresh())
    list_id = _id(made)
    await store.lists.add_member(others[0], list_id, author, fresh())
    old = (await people.status(author, "old"))["id"]
    await people.status(others[1], "of another")
    await drain(store, raw)
    check(raw)
    return Town(store, raw, author, others[:5], list_id, old, others[5])


def _id(made: Any) -> str:
    return str(json.loads(made)["id"])


async def _quietly(deed: "Deed", town: Town) -> None:
    """A deed that may come too late for what it is about."""
    with suppress(NotFound):
        await deed(town)


async def nothing(town: Town) -> None:
    """Nobody does anything meanwhile."""


async def leaves(town: Town) -> None:
    """A follower leaves."""
    await town.store.follows.unfollow(town.fickle, town.author, fresh())


async def wavers(town: Town) -> None:
    """A follower leaves and comes back."""
    await leaves(town)
    await town.store.follows.follow(town.fickle, town.author, fresh())


async def deletes(town: Town) -> None:
    """The author takes everything back."""
    for status in town.raw.zrange("{core}:profile:" + town.author, 0, -1):
        await town.store.statuses.delete(town.author, status.decode(), fresh())


async def arrives(town: Town) -> None:
    """Somebody new follows."""
    await town.store.follows.follow(town.newcomer, town.author, fresh())


async def crosses_out(town: Town) -> None:
    """The author is taken off the list."""
    await town.store.lists.remove_member(town.followers[0], town.list_id, town.author, fresh())


async def tears_up(town: Town) -> None:
    """The list is deleted."""
    await town.store.lists.delete(town.followers[0], town.list_id, fresh())


async def posts(town: Town) -> None:
    """The author writes."""
    await People(town.store).status(town.author, "new")


Deed = Callable[[Town], Awaitable[None]]

WRITES: dict[str, Deed] = {
    "post": posts,
    "delete": deletes,
    "follow": arrives,
    "unfollow": leaves,
    "waver": wavers,
    "delist": crosses_out,
    "list_delete": tears_up,
}
MEANWHILE: dict[str, Deed] = {
    "nothing": nothing,
    "leaves": leaves,
    "wavers": wavers,
    "deletes": deletes,
    "arrives": arrives,
    "crosses_out": crosses_out,
    "tears_up": tears_up,
    "posts": posts,
}


@pytest.fixture
async def own(redis_url: str) -> AsyncIterator[Store]:
    """A store with small passes, which lives on."""
    store = Store(redis_url, timeout_seconds=PATIENCE, size_limits=SIZES)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def wide(redis_url: str) -> AsyncIterator[Store]:
    """A store with passes in which everything has room, which lives on."""
    store = Store(redis_url, timeout_seconds=PATIENCE, size_limits=WIDE)
    await store.open()
    yield store
    await store.close()


async def _fates(
    own: Store, raw: Any, redis_url: str, write: Deed, deed: Deed, *, inline: bool, sizes: SizeLimits = SIZES
) -> int:
    """Every fate at every command of a write, or of the receivers behind it; gives how many there were."""
    town, fates = await _town(own, raw), 0
    if not inline:
        await _orphaned(town, redis_url, write)
    kept = Kept(raw)
    for dies, when in itertools.product((True, False), ("before", "half", "after")):
        for k in range(1, MOST):
            kept.restore()
            other = Store(redis_url, timeout_seconds=PATIENCE, size_limits=sizes)  # not opened: Redis knows the scripts
            doomed = Doomed(other, k, when, partial(_quietly, deed, town), dies=dies)
            with suppress(Killed, NotFound):  # somebody else was first
                await (write(town._replace(store=other)) if inline else receivers(other).run_until_empty())
            await other.close()
            await drain(own, raw)
            check(raw)
            if not doomed.met:
                break
            fates += 1
        else:
            pytest.fail("it does not end")
    return fates


async def _orphaned(town: Town, redis_url: str, write: Deed) -> None:
    """The write is done by a process that dies before its first pass; its jobs are due."""
    other = Store(redis_url, timeout_seconds=PATIENCE, size_limits=SIZES)
    with suppress(Killed):
        Doomed(other, 2, "before", partial(nothing, town), dies=True)
        await write(town._replace(store=other))
    await other.close()
    assert hurry(town.raw)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("write", sample(WRITES, lambda write: write in {"post", "delete"}))
async def test_a_request_that_dies_or_is_overtaken_between_any_two_commands(
    own: Store, raw: Any, redis_url: str, write: str, meanwhile: str
) -> None:
    """Its job is done by others, and nothing that it left behind stays."""
    assert await _fates(own, raw, redis_url, WRITES[write], MEANWHILE[meanwhile], inline=True)


@pytest.mark.parametrize("meanwhile", sample(MEANWHILE, lambda meanwhile: meanwhile == "leaves"))
@pytest.mark.parametrize(
    "write",
    [pytest.param(write, marks=[] if write == "post" else [pytest.mark.nightly]) for write in WRITES],
)
async def test_a_receiver_that_dies_or_is_overtaken_between_any_two_commands(
    own: Store, raw: Any, redis_url: str, write: str, meanwhile: str
) -> None:
    """Another one goes on where it was, and nothing that it left behind stays."""
    assert await _fates(own, raw, redis_url, WRITES[write], MEANWHILE[meanwhile], inline=False) >= 6


@pytest.mark.parametrize("meanwhile", sample(MEANWHILE, lambda meanwhile: meanwhile == "nothing"))
@pytest.mark.parametrize("write", ["post", "delete"])
async def test_a_pass_over_followers_and_lists_together_dies_or_is_overtaken(
    wide: Store, raw: Any, redis_url: str, write: str, meanwhile: str
) -> None:
    """Who left, and what the author was taken off, is found in both; nothing that was left behind stays."""
    fates = _fates(wide, raw, redis_url, WRITES[write], MEANWHILE[meanwhile], inline=True, sizes=WIDE)
    assert await fates == 2 * 3 * 3 or meanwhile != "nothing", "script, pipeline, advance: each may be the last"


@pytest.mark.parametrize("meanwhile", ["leaves", "wavers", "crosses_out"])
async def test_who_goes_while_a_post_is_on_its_way_is_found_in_the_same_call(
    wide: Store, raw: Any, redis_url: str, meanwhile: str
) -> None:
    """No home and no list holds it even until its job is done again: the truth is asked whether it has moved."""
    town = await _town(wide, raw)
    other = Store(redis_url, timeout_seconds=PATIENCE, size_limits=WIDE)
    doomed = Doomed(other, 2, "before", partial(_quietly, MEANWHILE[meanwhile], town), dies=False)
    await posts(town._replace(store=other))
    await other.close()
    assert doomed.met
    check(raw)
