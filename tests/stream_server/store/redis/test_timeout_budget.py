"""The total time one request may wait for Redis, and what the request may claim about its write afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from stream_server.errors import Conflict, OutcomeUnknown, Unavailable
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.redis.scripts import FIRST_ATTEMPT_SHARE, ScriptRunner
from tests.stream_server.store.people import new_key
from tests.stream_server.store.redis.budgets import budget
from tests.stream_server.store.redis.jumping_clock import JumpingClock
from tests.stream_server.store.redis.scripted_redis import CUT, SILENCE, ScriptedRedis
from tests.waiting import PATIENCE

SHORT = PATIENCE / 2
"""After this silence a call no longer uses the connection."""

MADE = b"*2\r\n:0\r\n$5\r\n1-0 1\r\n"


@pytest.fixture(autouse=True)
async def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    """Only waiting moves the clock, so a busy machine changes no result."""
    return JumpingClock(monkeypatch)


@pytest.fixture
async def redis() -> AsyncIterator[ScriptedRedis]:
    """A Redis that answers writes, is silent on GET, and closes the connection on DEL."""
    async with ScriptedRedis(EVALSHA=[MADE], GET=[SILENCE], DEL=[CUT]) as made:
        yield made


@pytest.fixture
async def link(redis: ScriptedRedis) -> AsyncIterator[RedisClient]:
    made = RedisClient(redis.url, PATIENCE)
    yield made
    await made.close()


async def test_waiting_uses_up_the_budget(link: RedisClient, redis: ScriptedRedis) -> None:
    with budget(PATIENCE):
        with pytest.raises(Unavailable):
            await link.execute(("GET", "k"), max_seconds=SHORT)
        assert link.remaining_seconds == PATIENCE - SHORT
        with pytest.raises(Unavailable):
            await link.execute(("GET", "k"))
        assert link.remaining_seconds == 0
        with pytest.raises(Unavailable):
            await link.execute(("GET", "k"))
    assert redis.count("GET") == 2
    assert link.remaining_seconds == PATIENCE, "a command outside a request gets the whole time-out each time"


async def test_only_waiting_for_redis_uses_up_the_budget(link: RedisClient) -> None:
    with budget(PATIENCE):
        await link.execute(("PING",))
        left = link.remaining_seconds
        await asyncio.sleep(0.05)  # time that the request spends without Redis
        assert link.remaining_seconds == left == PATIENCE


@pytest.mark.parametrize(("left", "share"), [(0.6, FIRST_ATTEMPT_SHARE), (0.4, 1.0)])
async def test_a_write_attempt_gets_a_share_of_the_remaining_budget(
    link: RedisClient, left: float, share: float
) -> None:
    """All of the budget, if two attempts would both be too short."""
    given = []
    exchange = link.run_pipeline

    async def noted(commands: object, timeout_seconds: float) -> list[object]:
        given.append(timeout_seconds)
        return await exchange(commands, timeout_seconds)  # type: ignore[arg-type]  # handed on as it is

    link.run_pipeline = noted  # type: ignore[method-assign]  # what the test looks at
    with budget(PATIENCE * left):
        await ScriptRunner(link, SizeLimits()).write("like", new_key(), uid="1", id="2")
    assert given == [pytest.approx(PATIENCE * left * share)]


async def test_a_failed_read_after_a_write_has_an_unknown_outcome(link: RedisClient, redis: ScriptedRedis) -> None:

    async def request(*, writes: bool) -> None:
        with budget(PATIENCE):
            if writes:
                await ScriptRunner(link, SizeLimits()).write("like", new_key(), uid="1", id="2")
            await link.execute(("DEL", "k"))

    with pytest.raises(Unavailable):
        await request(writes=False)
    with pytest.raises(OutcomeUnknown) as failure:
        await request(writes=True)
    assert failure.value.retry_after == 1
    assert redis.count("DEL") == 2


async def test_other_errors_after_a_write_stay_as_they_are(link: RedisClient) -> None:

    async def request() -> None:
        with budget(PATIENCE):
            await ScriptRunner(link, SizeLimits()).write("like", new_key(), uid="1", id="2")
            raise Conflict("no")

    with pytest.raises(Conflict):
        await request()


async def test_concurrent_requests_have_separate_budgets(link: RedisClient) -> None:

    async def request(name: str) -> float:
        with budget(PATIENCE):
            with suppress(Unavailable):
                await link.execute((name, "k"), max_seconds=SHORT)
            return link.remaining_seconds

    waited, quick = await asyncio.gather(request("GET"), request("SET"))  # on connections of their own
    assert waited == PATIENCE - SHORT
    assert quick == PATIENCE
