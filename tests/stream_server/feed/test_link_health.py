"""The state of the link to Redis, by a manual clock."""

import random

import pytest

from stream_server.errors import Unavailable
from stream_server.feed.link_health import BACKOFF_SECONDS, MAX_FLAP_SECONDS, STABLE_SECONDS, LinkHealth, LinkLost

LOST = LinkLost("gone")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> LinkHealth:
    return LinkHealth(random.Random(1), monotonic=clock)


async def test_the_lag_counts_from_the_last_time_the_link_was_healthy(health: LinkHealth, clock: Clock) -> None:
    health.mark_healthy()
    clock.now += 1.5
    assert health.lag_ms() == 0
    health.mark_lost(LOST)
    assert health.lag_ms() == 1500
    clock.now += 0.5
    health.mark_lost(LOST)
    assert health.lag_ms() == 2000
    health.mark_healthy()
    assert health.lag_ms() == 0


async def test_reconnect_delays_grow_to_the_maximum_and_differ(health: LinkHealth, clock: Clock) -> None:
    begun, waits = clock.now, []
    while clock.now < begun + 600:
        waits.append(health.mark_lost(LOST))
        clock.now += waits[-1]
    shortest, longest = BACKOFF_SECONDS
    assert len(waits) < 600
    assert shortest / 2 <= waits[0] <= shortest * 1.5
    assert max(waits) <= longest
    assert len(set(waits[:5])) == 5


async def test_reconnect_delays_grow_while_a_link_flaps(health: LinkHealth, clock: Clock) -> None:
    waits = []
    for _ in range(20):
        health.mark_healthy()
        clock.now += 0.1
        waits.append(health.mark_lost(LOST))
    assert min(waits[7:]) >= MAX_FLAP_SECONDS / 2
    assert max(waits) <= MAX_FLAP_SECONDS
    health.mark_healthy()
    clock.now += STABLE_SECONDS
    health.mark_healthy()
    assert health.mark_lost(LOST) <= BACKOFF_SECONDS[0] * 1.5


async def test_the_log_tells_a_loss_other_reasons_and_the_return_once_each(
    health: LinkHealth, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A failed attempt is not a loss, and a reason is never empty."""
    caplog.set_level("INFO")
    refused = Unavailable("the data store cannot be reached")
    refused.__cause__ = ConnectionRefusedError(111, "Connection refused")
    health.mark_healthy()
    for error in (TimeoutError(), refused, refused, refused):
        health.mark_lost(error)
        clock.now += 1.0
    health.mark_healthy()
    health.mark_healthy()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "subscription to Redis lost: no answer in time (frozen)"),
        ("WARNING", "no subscription to Redis yet: [Errno 111] Connection refused"),
        ("INFO", "subscribed to Redis again after 4.0 s"),
    ]
