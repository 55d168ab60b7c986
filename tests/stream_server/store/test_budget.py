"""All that one request waits for Redis is within one time-out, and what it is told is true of all that it did."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import pytest

from stream_server.errors import Conflict, OutcomeUnknown, Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import FIRST_ATTEMPT_SHARE, Scripts, SizeLimits
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.jumping import FarRedis, JumpingClock
from tests.stream_server.store.people import People
from tests.stream_server.store.scripted import CUT, SILENCE, ScriptedRedis
from tests.waiting import PATIENCE

SHORT = PATIENCE / 4
"""Exact, and so is what is left."""

MADE = b"*2\r\n:0\r\n$5\r\n1-0 1\r\n"


@pytest.fixture(autouse=True)
async def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    """Time passes by waiting alone: what a test takes on a busy machine is none of it."""
    return JumpingClock(monkeypatch)


@pytest.fixture
async def redis() -> AsyncIterator[ScriptedRedis]:
    """It answers writes, keeps silent on GET and hangs up on DEL."""
    async with ScriptedRedis(EVALSHA=[MADE], GET=[SILENCE], DEL=[CUT]) as made:
        yield made


@pytest.fixture
async def link(redis: ScriptedRedis) -> AsyncIterator[RedisClient]:
    """It is closed also when a test fails, which would fail the next one by its warnings."""
    made = RedisClient(redis.url, PATIENCE)
    yield made
    await made.close()


async def test_what_was_waited_is_gone(link: RedisClient, redis: ScriptedRedis) -> None:
    """A second question has the rest, a third nothing: it is not even sent."""
    with timeout_budget.limit_total_wait(PATIENCE):
        with pytest.raises(Unavailable):
            await link.execute(("GET", "k"), max_seconds=SHORT)
        assert link.remaining_seconds == PATIENCE - SHORT
        with pytest.raises(Unavailable):
            await link.execute(("GET", "k"))
        assert link.remaining_seconds == 0
        with pytest.raises(Unavailable):
            await link.execute(("GET", "k"))
    assert redis.count("GET") == 2
    assert link.remaining_seconds == PATIENCE, "who is no request has each time-out anew"


async def test_only_redis_is_waited_for(link: RedisClient) -> None:
    """A slow body and the hashing of a password take nothing from it."""
    with timeout_budget.limit_total_wait(PATIENCE):
        await link.execute(("PING",))
        left = link.remaining_seconds
        await asyncio.sleep(0.05)
        assert link.remaining_seconds == left == PATIENCE


@pytest.mark.parametrize(("left", "share"), [(0.6, FIRST_ATTEMPT_SHARE), (0.4, 1.0)])
async def test_an_attempt_of_a_write_has_what_is_left(link: RedisClient, left: float, share: float) -> None:
    """The first its share of it, else there would be no second one; all of it where two would both be too short."""
    given = []
    exchange = link.run_pipeline

    async def noted(commands: object, timeout_seconds: float) -> list[object]:
        given.append(timeout_seconds)
        return await exchange(commands, timeout_seconds)  # type: ignore[arg-type]  # handed on as it is

    link.run_pipeline = noted  # type: ignore[method-assign]  # what the test looks at
    with timeout_budget.limit_total_wait(PATIENCE * left):
        await Scripts(link, SizeLimits()).write("like", IdempotencyKey.generate())
    assert given == [pytest.approx(PATIENCE * left * share)]


FAR_SECONDS = 0.84
"""For one answer: a new connection, who it is and a write take 2.52 s, the first timelines more than is left of 3 s."""

FAR_TIMEOUT_SECONDS = 3.0


async def test_a_redis_that_takes_a_quarter_of_the_time_out_takes_writes(
    redis_server: RedisProcess, redis_url: str
) -> None:
    """Each request gives up its last step, again and again; a repetition under its key asks once more, for the answer.

    With a new connection for each that was given up, none would come to its end.
    """

    async def post(number: int) -> bytes:
        with timeout_budget.limit_total_wait(FAR_TIMEOUT_SECONDS):
            await store.ping()
            return await store.statuses.create(
                ann, StatusDraft(message="x"), IdempotencyKey.from_client(ann, f"key {number}", b"")
            )

    async with FarRedis(redis_server.socket) as far, AsyncExitStack() as stack:
        store = Store(far.url, timeout_seconds=FAR_TIMEOUT_SECONDS)
        stack.push_async_callback(store.close)
        await store.open()
        ann = await People(store).user("Ann")
        far.seconds = FAR_SECONDS
        made = [await post(number) for number in range(2)]
        assert await post(1) == made[1]
        assert store.syndication.failed_passes >= 2
        assert far.connections <= 3, "late answers are waited for, so that connections last"
        assert (await store.log.head()).n == 2


async def test_behind_a_write_nothing_says_that_nothing_was_written(link: RedisClient, redis: ScriptedRedis) -> None:
    """Reading for the answer fails, and the write is on the log; before it, the same failure is told as it is."""

    async def request(*, writes: bool) -> None:
        with timeout_budget.limit_total_wait(PATIENCE):
            if writes:
                await Scripts(link, SizeLimits()).write("like", IdempotencyKey.generate())
            await link.execute(("DEL", "k"))

    with pytest.raises(Unavailable):
        await request(writes=False)
    with pytest.raises(OutcomeUnknown) as told:
        await request(writes=True)
    assert told.value.retry_after == 1
    assert redis.count("DEL") == 2


async def test_other_refusals_pass_as_they_are(link: RedisClient) -> None:
    """They say nothing of what was written before."""

    async def request() -> None:
        with timeout_budget.limit_total_wait(PATIENCE):
            await Scripts(link, SizeLimits()).write("like", IdempotencyKey.generate())
            raise Conflict("no")

    with pytest.raises(Conflict):
        await request()


async def test_requests_at_the_same_time_have_each_their_own(link: RedisClient) -> None:
    """One that waits takes nothing from the others."""

    async def request(name: str) -> float:
        with timeout_budget.limit_total_wait(PATIENCE):
            with suppress(Unavailable):
                await link.execute((name, "k"), max_seconds=SHORT)
            return link.remaining_seconds

    waited, quick = await asyncio.gather(request("GET"), request("PING"))
    assert waited == PATIENCE - SHORT
    assert quick == PATIENCE


async def test_who_is_cancelled_waits_for_no_late_answer(link: RedisClient, redis: ScriptedRedis) -> None:
    """Its connection is closed at once, while one whose time was over is kept for the answer."""
    asked = asyncio.create_task(link.execute(("GET", "k")))
    with pytest.raises(Unavailable):
        await link.execute(("GET", "k"), max_seconds=SHORT)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await asyncio.sleep(SHORT)
    assert (redis.connections, redis.left) == (2, 1)
