"""The total time one request may wait for Redis, and what the request may claim about its write afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import pytest

from stream_server.errors import Conflict, OutcomeUnknown, Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Lane
from stream_server.store.redis.scripts import FIRST_ATTEMPT_SHARE, Scripts, SizeLimits
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.redis.budgets import budget
from tests.stream_server.store.redis.jumping_clock import FarRedis, JumpingClock
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
        await Scripts(link, SizeLimits()).write("like", new_key())
    assert given == [pytest.approx(PATIENCE * left * share)]


FAR_SECONDS = 0.84
"""Seconds for one answer. Two reads and a write take 2.52 s; the first timelines exceed the 3 s."""

FAR_TIMEOUT_SECONDS = 3.0


async def test_a_slow_redis_still_takes_writes(redis_server: RedisProcess, redis_url: str) -> None:
    """Each request gives up its last step, and keeps the connection for the late answer.

    A connection per abandoned step would exhaust Redis.
    """

    async def post(number: int, reads: int) -> bytes:
        with budget(FAR_TIMEOUT_SECONDS):
            for _ in range(reads):
                await store.ping()
            return await store.statuses.create(
                ann, StatusDraft(message="x"), IdempotencyKey.from_client(ann, f"key {number}", b"")
            )

    async with FarRedis(redis_server.socket) as far, AsyncExitStack() as stack:
        store = Store(far.url, timeout_seconds=FAR_TIMEOUT_SECONDS)
        stack.push_async_callback(store.close)
        await store.open()
        ann = await People(store).user("Ann")
        # So many readers that the timelines are a second step.
        redis_server.client().zadd("{core}:followers:" + ann, {str(number): 1 for number in range(1000, 1100)})
        far.seconds = FAR_SECONDS
        made = [await post(number, reads=2) for number in range(2)]
        assert await post(1, reads=0) == made[1]  # it connects once more, to read the log
        assert store.syndication.failed_passes >= 2
        assert far.connections <= len(Lane), "late answers are waited for, so that connections last"
        assert (await store.log.head()).n == 2


async def test_a_failed_read_after_a_write_has_an_unknown_outcome(link: RedisClient, redis: ScriptedRedis) -> None:

    async def request(*, writes: bool) -> None:
        with budget(PATIENCE):
            if writes:
                await Scripts(link, SizeLimits()).write("like", new_key())
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
            await Scripts(link, SizeLimits()).write("like", new_key())
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


async def test_cancelled_and_timed_out_commands_keep_their_connection(link: RedisClient, redis: ScriptedRedis) -> None:
    asked = asyncio.create_task(link.execute(("GET", "k")))
    with pytest.raises(Unavailable):
        await link.execute(("GET", "k"), max_seconds=SHORT)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await asyncio.sleep(SHORT)  # late answers are waited for
    assert (redis.connections, redis.left) == (1, 0)
