"""The state of the link to Redis, by a clock that only the test moves."""

import random

import pytest

from stream_server.feed.link_health import BACKOFF_SECONDS, STABLE_SECONDS, LinkHealth


class Clock:
    """Seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock."""
    return Clock()


@pytest.fixture
def health(clock: Clock) -> LinkHealth:
    """A link that was never well."""
    return LinkHealth(random.Random(1), monotonic=clock)


async def test_the_lag_counts_from_the_last_moment_that_was_known_to_be_well(health: LinkHealth, clock: Clock) -> None:
    """Not from when the trouble was noticed: what was written in between did not arrive either."""
    health.mark_healthy()
    clock.now += 1.5
    assert health.lag_ms() == 0
    health.mark_lost()
    assert health.lag_ms() == 1500
    clock.now += 0.5
    health.mark_lost()
    assert health.lag_ms() == 2000
    health.mark_healthy()
    assert health.lag_ms() == 0


async def test_waits_grow_to_the_longest_and_are_never_alike(health: LinkHealth, clock: Clock) -> None:
    """An outage of ten minutes is some hundreds of dials, not one after the other."""
    begun, waits = clock.now, []
    while clock.now < begun + 600:
        waits.append(health.mark_lost())
        clock.now += waits[-1]
    shortest, longest = BACKOFF_SECONDS
    assert len(waits) < 600
    assert shortest / 2 <= waits[0] <= shortest * 1.5
    assert max(waits) <= longest
    assert len(set(waits[:5])) == 5


async def test_a_link_that_flaps_is_not_dialled_at_each_flap(health: LinkHealth, clock: Clock) -> None:
    """Well for a tenth of a second each time: the waits grow as in an outage, until it stays well."""
    waits = []
    for _ in range(20):
        health.mark_healthy()
        clock.now += 0.1
        waits.append(health.mark_lost())
    assert min(waits[7:]) >= BACKOFF_SECONDS[1] / 2
    health.mark_healthy()
    clock.now += STABLE_SECONDS
    health.mark_healthy()
    assert health.mark_lost() <= BACKOFF_SECONDS[0] * 1.5
