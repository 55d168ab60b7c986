"""Counting the uses of a limit, in one process and in several that share the counters."""

import asyncio
from collections import Counter

import pytest

from stream_server.errors import Unavailable
from stream_server.store.rate_counters import RateCount
from stream_server.web.limits.rate_limits import MAX_WINDOWS, MINUTE, PORTION, RateLimit, RateLimiter, Subject

LIMIT = RateLimit("reads", MINUTE, Subject.USER, "reads")


class Clock:
    """A clock that only a test moves, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class SharedCounters:
    """The shared counters in memory. Each answer takes one iteration of the loop, as Redis' does at least."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.counts: Counter[str] = Counter()
        self.ends: dict[str, float] = {}
        self.calls = 0
        self.is_away = False

    async def add(self, limit_name: str, subject: str, amount: int, window_seconds: int) -> RateCount:
        await asyncio.sleep(0)
        self.calls += 1
        if self.is_away:
            raise Unavailable("away")
        key = f"{limit_name} {subject}"
        if self.ends.get(key, 0) <= self.clock.now:
            self.ends[key], self.counts[key] = self.clock.now + window_seconds, 0
        self.counts[key] += amount
        return RateCount(self.counts[key], self.ends[key])


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counters(clock: Clock) -> SharedCounters:
    return SharedCounters(clock)


async def admitted(limiter: RateLimiter, maximum: int, uses: int, amount: int = 1) -> int:
    """Return how many of ``uses`` parallel uses the limiter admits."""
    answers = await asyncio.gather(*(limiter.use(LIMIT, "1", maximum, amount) for _ in range(uses)))
    return sum(answer.admitted for answer in answers)


async def test_uses_that_were_made_already_count_for_all_processes(clock: Clock, counters: SharedCounters) -> None:
    """They may exceed the limit. The next use reports them, and another process knows of them then."""
    one, other = RateLimiter(counters, clock), RateLimiter(counters, clock)
    assert await admitted(one, 100, 10) == 10
    assert one.charge(LIMIT, "1", 100, 60).remaining == 30
    assert one.charge(LIMIT, "1", 100, 95).remaining == 0
    assert await admitted(one, 100, 1) == 0
    assert await admitted(other, 100, 100, 6) == 0
    clock.now += MINUTE + 1
    assert await admitted(one, 100, 200) == 100


@pytest.mark.parametrize("maximum", [1, 3, 10, PORTION - 1, PORTION, 100, 1000])
async def test_one_process_admits_exactly_the_limit(clock: Clock, counters: SharedCounters, maximum: int) -> None:
    limiter = RateLimiter(counters, clock)
    assert await admitted(limiter, maximum, maximum + 200) == maximum
    clock.now += MINUTE + 1
    assert await admitted(limiter, maximum, maximum + 200) == maximum


@pytest.mark.parametrize("maximum", [1, 5, PORTION - 1])
async def test_small_limits_are_exact_over_all_processes(clock: Clock, counters: SharedCounters, maximum: int) -> None:
    limiters = [RateLimiter(counters, clock) for _ in range(4)]
    answers = await asyncio.gather(*(admitted(limiter, maximum, 50) for limiter in limiters))
    assert sum(answers) == maximum


async def test_large_limits_are_exceeded_by_a_portion_for_each_process_at_most(
    clock: Clock, counters: SharedCounters
) -> None:
    limiters = [RateLimiter(counters, clock) for _ in range(4)]
    answers = await asyncio.gather(*(admitted(limiter, 1000, 600) for limiter in limiters))
    assert 1000 <= sum(answers) <= 1000 + 4 * 1000 // PORTION


async def test_most_uses_need_no_round_trip(clock: Clock, counters: SharedCounters) -> None:
    limiter = RateLimiter(counters, clock)
    for _ in range(1000):
        await limiter.use(LIMIT, "1", 1000)
    assert counters.calls <= PORTION + 1
    before = counters.calls
    assert await admitted(limiter, 1000, 500) == 0
    assert counters.calls <= before + 1, "a subject at its limit is refused from memory"


async def test_an_amount_is_admitted_whole_or_not_at_all(clock: Clock, counters: SharedCounters) -> None:
    limiter = RateLimiter(counters, clock)
    assert await admitted(limiter, 100, 30, amount=30) == 3
    assert await admitted(limiter, 100, 20, amount=1) == 10


async def test_what_is_left_falls_to_zero(clock: Clock, counters: SharedCounters) -> None:
    limiter = RateLimiter(counters, clock)
    left = [(await limiter.use(LIMIT, "1", 5)).remaining for _ in range(6)]
    assert left == [4, 3, 2, 1, 0, 0]


async def test_other_subjects_are_unhurt(clock: Clock, counters: SharedCounters) -> None:
    limiter = RateLimiter(counters, clock)
    await admitted(limiter, 5, 50)
    assert (await limiter.use(LIMIT, "2", 5)).admitted


async def test_a_use_that_is_given_back_does_not_count(clock: Clock, counters: SharedCounters) -> None:
    limiter = RateLimiter(counters, clock)
    for _ in range(50):
        assert (await limiter.use(LIMIT, "1", 5)).admitted
        limiter.give_back(LIMIT, "1")
    assert await admitted(limiter, 5, 50) == 5


async def test_without_redis_uses_are_admitted(clock: Clock, counters: SharedCounters) -> None:
    counters.is_away = True
    assert await admitted(RateLimiter(counters, clock), 5, 50) == 50


async def test_memory_is_bounded(clock: Clock, counters: SharedCounters) -> None:
    limiter = RateLimiter(counters, clock)
    for number in range(MAX_WINDOWS + 100):
        await limiter.use(LIMIT, str(number), 100)
    assert len(limiter._windows) <= MAX_WINDOWS
