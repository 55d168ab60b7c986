"""The figures that commands show while they run."""

import random

import pytest

from stream_server.commands.load import LatencyHistogram, is_on_this_machine
from stream_server.commands.output import OutputConsole
from stream_server.commands.stats import render_state
from stream_server.commands.tail import MAX_EVENTS, RateMeter
from stream_server.monitoring.operations import (
    ErrorState,
    HostState,
    JobState,
    LimitState,
    LogState,
    RedisState,
    SlowClient,
    StreamCounts,
    WorkerState,
)


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    for n in range(40):
        clock.now += 0.5
        meter.add(float(n))
    assert (meter.count, meter.median_age_ms) == (40, 29.0)
    assert meter.per_second == pytest.approx(2.1)
    clock.now += 9.8
    assert meter.per_second == pytest.approx(0.1)
    clock.now += 1
    assert (meter.per_second, meter.median_age_ms, str(meter.__rich__())) == (0, None, "0.0/s · 40 events")


def test_the_rate_does_not_jump_in_the_first_second() -> None:
    meter = RateMeter(Clock())
    meter.add(1)
    assert meter.per_second == 1


def test_a_high_rate_is_measured_in_bounded_memory() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    for _ in range(3 * MAX_EVENTS):
        clock.now += 0.0001
        meter.add(1)
    assert meter.per_second == pytest.approx(10_000, rel=0.01)


def test_quantiles_are_exact_to_one_percent() -> None:
    """Compared with the sorted values themselves."""
    chance = random.Random(7)
    values = [chance.lognormvariate(-4, 2) for _ in range(2000)]
    histogram = LatencyHistogram()
    for value in values:
        histogram.add(value)
    ordered = sorted(values)
    for share in (0.01, 0.5, 0.99, 1.0):
        exact = ordered[max(0, round(share * len(ordered)) - 1)] * 1000
        assert histogram.quantile_ms(share) == pytest.approx(exact, rel=0.0101)
    assert LatencyHistogram().summary() == {"p50_ms": None, "p99_ms": None}


HERE = ("http://127.0.0.1:8000", "http://127.8.8.8", "http://[::1]:8000", "http://localhost:8000")
ELSEWHERE = ("http://localhost.example.org", "http://10.0.0.5", "http://127.0.0.1.example.org", "nonsense")


def test_which_servers_are_on_this_machine() -> None:
    assert [url for url in (*HERE, *ELSEWHERE) if is_on_this_machine(url)] == [*HERE]


def state(delivered: int) -> HostState:
    worker = WorkerState(1, 4711, ready=True, streams=StreamCounts(sse=3, poll=9), events_delivered=delivered)
    opened = "2026-01-31T12:00:00.000Z"
    slow = SlowClient("c1", 1, "", "/v1/stream", "track=\x1b[2Jtea", opened, 12_345, 1, 61, "a-token")
    return HostState(
        "2026-01-31T12:34:56.000Z", [worker, WorkerState(2)], RedisState(memory_alarm=True), LogState(entries=1000),
        JobState(parked=2), [slow] * 9, [LimitState("streams_per_user", 5, "2026-01-31T12:00:00.000Z")],
        [ErrorState("2026-01-31T12:00:00.000Z", 1, "feed", "lost\nRedis", 3)],
    )  # fmt: skip


def test_the_state_of_a_server_as_tables() -> None:
    console = OutputConsole()
    with console.capture() as captured:
        console.print(render_state(state(1300), state(1000), 2.0))
    shown = captured.get()
    first, second = (line.split() for line in shown.splitlines() if line.split()[0] in {"1", "2"})
    assert first[:6] == ["1", "ready", "3", "0", "0.0", "150.0"]
    assert second[:3] == ["2", "NOT", "READY"]
    assert shown.count("12,345") == shown.count("reader a-token") == 5, "no more than the slowest five"
    parts = ("MEMORY ALARM", "1,000 entries", "2 parked", "streams_per_user", "lost⏎ Redis (3)", "\\x1b[2Jtea")
    for part in parts:
        assert part in shown
    assert "\x1b[2J" not in shown
