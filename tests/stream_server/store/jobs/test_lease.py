"""A lease belongs to one holder at a time, and to nobody while it rests."""

from typing import Any

import pytest

from stream_server.store.jobs.lease import Lease
from stream_server.store.store import Store


@pytest.fixture
def leases(store: Store) -> list[Lease]:
    """Two holders of one lease."""
    return [Lease(store._scripts, "test") for _ in range(2)]


def _end_in_redis(raw: Any) -> None:
    raw.hset("{core}:leases", "test:until", 0)


async def test_one_of_two_holds_it(leases: list[Lease]) -> None:
    one, other = leases
    assert (await one.hold(60), await other.hold(60)) == (True, False)
    assert await one.hold(60), "its holder prolongs it"


async def test_its_holder_takes_it_again_when_the_time_is_over(leases: list[Lease], raw: Any) -> None:
    one, other = leases
    assert await one.hold(60)
    _end_in_redis(raw)
    assert (await one.hold(60), await other.hold(60)) == (True, False)


async def test_another_takes_it_when_the_time_is_over(leases: list[Lease], raw: Any) -> None:
    one, other = leases
    assert await one.hold(60)
    _end_in_redis(raw)
    assert await other.hold(60)
    assert not await one.hold(60)
    assert not await one.rest(60), "who lost it does not end the time of the other"
    assert await other.hold(60)


async def test_nobody_has_it_while_it_rests(leases: list[Lease], raw: Any) -> None:
    one, other = leases
    assert await one.hold(60)
    assert await one.rest(60)
    assert [await each.hold(60) for each in leases] == [False, False]
    _end_in_redis(raw)
    assert await other.hold(60)


async def test_one_of_all_may_do_what_is_due_once_in_an_interval(leases: list[Lease]) -> None:
    one, other = leases
    assert [await one.rest(60), await other.rest(60), await one.rest(60)] == [True, False, False]


async def test_what_its_holder_keeps_is_for_who_has_it_next(store: Store, raw: Any) -> None:
    one, other = store.expiry.make_lease(), store.expiry.make_lease()
    assert await one.hold(60, cursor=7)
    assert await one.hold(60)
    assert (one.kept["cursor"], abs(one.now_ms - int(raw.time()[0]) * 1000) < 60_000) == ("7", True)
    raw.hset("{core}:expiry", "until", 0)
    assert await other.hold(60)
    assert other.kept["cursor"] == "7"


async def test_leases_of_different_names_are_independent(store: Store) -> None:
    assert await store.repair.lease.hold(60)
    assert await store.idle_homes.lease.hold(60)


async def test_the_expiry_heeds_the_lease_of_an_older_version(store: Store, raw: Any) -> None:
    raw.hset("{core}:expiry", mapping={"holder": "another", "until": (int(raw.time()[0]) + 60) * 1000})
    assert not await store.expiry.make_lease().hold(60)
