"""Wrong and jumping clocks. All times on the log come from Redis' clock, which may be set back too.

The server really runs with a wrong clock (`faults/skewed_clock.py`). Redis and the test use the machine's clock. The
tests emulate that Redis' clock was set back: they raise the last time in `{core}:meta` by an hour, which is what a
clock that was an hour ahead leaves behind. A clock of Redis that jumps ahead looks the same just before that.
"""

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stream_server.store import keys
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.skewed_clock import MODULE, SKEW_FILE, ahead, jumped, skew
from tests.end_to_end.server import Server
from tests.redis_process import RedisProcess, private_redis

pytestmark = pytest.mark.extended

HOUR = 3600

JUMPS = pytest.mark.parametrize(
    "seconds", [pytest.param(HOUR, id="ahead"), pytest.param(-HOUR, id="behind", marks=pytest.mark.nightly)]
)


@dataclass
class Clocked:
    """A server whose clock a test can set forward or back, and a user."""

    redis: RedisProcess
    server: Server
    api: Api
    uid: str
    file: Path
    skewed: float = 0.0

    async def jump(self, seconds: float) -> None:
        """Set the clock, and wait until the server's heartbeats have the new time."""
        async with await self.stream(track="nothing") as stream:
            self.skewed = seconds
            skew(self.file, seconds)
            await stream.until(partial(jumped, seconds))

    def token(self, ttl: float = 600) -> str:
        now = time.time() + self.skewed
        return mint(self.uid, iat=int(now), exp=now + ttl)

    async def post(self, message: str) -> dict[str, Any]:
        status: dict[str, Any] = await self.api.done(
            "POST", "/v1/statuses", token=self.token(), json={"message": message}
        )
        return status

    async def stream(self, **params: str) -> Consumer:
        return await self.api.stream(params or {"follow": self.uid}, token=self.token())


@pytest.fixture(scope="module")
def ticking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RedisProcess, Server, Path]]:
    """A Redis, a server, and the file with the error of its clock. The last test spoils the time of the log."""
    folder = tmp_path_factory.mktemp("clocks")
    file = folder / "skew"
    skew(file, 0)
    with private_redis() as redis:
        flags = ("--heartbeat-seconds", "0.2", "--redis", redis.url, "--canary-seconds", "0.5")
        with Server(folder, *flags, module=MODULE, variables={SKEW_FILE: str(file)}) as server:
            yield redis, server, file


@pytest.fixture
async def clocked(ticking: tuple[RedisProcess, Server, Path]) -> AsyncIterator[Clocked]:
    redis, server, file = ticking
    skew(file, 0)
    async with Api(server) as api:
        yield Clocked(redis, server, api, await api.user(), file)


async def beats(stream: Consumer, more: int) -> list[dict[str, Any]]:
    before = len(stream.of("heartbeat"))
    await stream.until(lambda s: len(s.of("heartbeat")) >= before + more)
    return stream.of("heartbeat")[before:]


def iso(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def told(stream: Consumer) -> list[str]:
    return [status_id for _, status_id in stream.received]


async def test_ids_and_order_do_not_depend_on_the_servers_clock(clocked: Clocked) -> None:
    """The server's clock jumps while a stream is open. Ids still rise by the true time, and the stream continues."""
    made = []
    async with await clocked.stream() as stream:
        for seconds in (0, HOUR, -HOUR, 0):
            await clocked.jump(seconds)
            for number in range(5):
                made.append(await clocked.post(f"{number} at {seconds}"))
                assert abs(ahead(made[-1]["posted"])) < 300
            await beats(stream, 3)
        ids = [status["id"] for status in made]
        await stream.until(lambda s: ids[-1] in told(s))
        assert told(stream) == ids == sorted(set(ids), key=int)
        assert not stream.ended
        assert {beat["lag_ms"] for beat in stream.of("heartbeat")} == {0}
        cursors = [tuple(map(int, event["cursor"].partition(".")[0].split("-"))) for event in stream.events]
        assert cursors == sorted(cursors)


@JUMPS
async def test_since_uses_the_time_of_the_log(clocked: Clocked, seconds: float) -> None:
    """Ages and times in `since` mean the same on a server whose clock is an hour wrong. A future time is refused."""
    first = await clocked.post("before")
    await clocked.jump(seconds)
    second = await clocked.post("after")
    for since in ("-15m", first["posted"], iso(-15 * 60)):
        async with await clocked.stream(follow=clocked.uid, since=since) as stream:
            await stream.until(lambda s: second["id"] in told(s))
            assert told(stream) == [first["id"], second["id"]]
    span = {"start_time": first["posted"], "end_time": second["posted"]}
    v2 = await clocked.api.call("GET", "/2/tweets/sample/stream", params=span, token=clocked.token())
    assert v2.status == 200, v2
    for to_come in (iso(15 * 60), iso(90 * 60)):
        refused = await clocked.api.call(
            "GET", "/v1/stream", params={"follow": clocked.uid, "since": to_come}, token=clocked.token()
        )
        assert refused.error == (400, "invalid_parameter", "since")


@JUMPS
async def test_a_token_is_checked_by_the_servers_clock(clocked: Clocked, seconds: float) -> None:
    """The server's clock decides whether a token is expired or not yet valid. The server's own tokens are valid."""
    good = mint(clocked.uid)
    assert (await clocked.api.call("GET", "/v1/users/me", token=good)).status == 200
    await clocked.jump(seconds)
    code = "token_expired" if seconds > 0 else "invalid_token"
    assert (await clocked.api.call("GET", "/v1/users/me", token=good)).error[:2] == (401, code)
    assert (await clocked.api.call("GET", "/v1/users/me", token=clocked.token())).status == 200
    login = f"c{clocked.uid}"[:20]
    await clocked.api.sign_up(login)
    session = await clocked.api.done("POST", "/v1/sessions", json={"login": login, "password": "correct horse"})
    assert (await clocked.api.call("GET", "/v1/users/me", token=session["token"])).status == 200


async def test_a_clock_jump_neither_prolongs_nor_ends_a_stream(clocked: Clocked) -> None:
    """The server measures a token's remaining life when the stream opens. Then a monotonic clock counts it down."""
    brief = await clocked.api.stream({"follow": clocked.uid}, token=clocked.token(ttl=6))
    long = await clocked.stream()
    await clocked.jump(-HOUR)
    await brief.until_end()
    assert brief.messages[-1]["code"] == "token_expired"
    assert jumped(-HOUR, brief)  # it ended after the jump
    await clocked.jump(HOUR)
    posted = await clocked.post("still here")
    await long.until(lambda s: posted["id"] in told(s))
    for stream in (brief, long):
        await stream.close()


async def test_heartbeats_report_the_true_lag_when_the_clock_jumps(clocked: Clocked) -> None:
    """The reported lag is the true length of the outage, whether the clock is set back or forward."""
    async with await clocked.stream() as stream:
        clocked.redis.kill()
        await stream.until(lambda s: s.messages[-1].get("lag_ms"))
        for seconds in (-HOUR, HOUR):
            skew(clocked.file, seconds)
            await stream.until(partial(jumped, seconds))
            assert all(0 < beat["lag_ms"] < 300_000 for beat in await beats(stream, 3))
        skew(clocked.file, 0)
        clocked.redis.start()
        await stream.until(lambda s: s.messages[-1].get("lag_ms") == 0)


async def test_redis_clock_set_back_leaves_ids_and_cursors_in_order(clocked: Clocked) -> None:
    """The log's time stands still until the clock has caught up. Ids still rise, and cursors and ages stay valid."""
    first = await clocked.post("before")
    old = await clocked.stream()
    with clocked.redis.client() as redis:
        ms = int(redis.hget(keys.META, "ms"))
        redis.hset(keys.META, "ms", ms + HOUR * 1000)
    made = [first, *[await clocked.post(f"number {number}") for number in range(5)]]
    ids = [status["id"] for status in made]
    assert ids == sorted(set(ids), key=int)
    assert all(abs(ahead(status["posted"]) - HOUR) < 300 for status in made[1:])  # the log kept the last time
    await old.until(lambda s: told(s) == ids[1:])
    middle = old.events[2]["cursor"]
    begins = {old.messages[0]["cursor"]: ids[1:], middle: ids[4:], "-15m": ids, made[-1]["posted"]: ids[1:]}
    await old.close()
    fresh = Server(clocked.file.with_name("fresh"), "--redis", clocked.redis.url)
    async with fresh, Api(fresh) as other:
        for api in (clocked.api, other):
            for since, wanted in begins.items():
                async with await api.stream({"follow": clocked.uid, "since": since}, token=clocked.token()) as stream:
                    await stream.until(lambda s: ids[-1] in told(s))
                    assert told(stream) == wanted
                    assert not stream.of("gap")


async def test_a_summary_counts_on_when_a_clock_jumps(clocked: Clocked) -> None:
    """Each event is in one window of its own second, while the server's clock or that of Redis is an hour wrong."""
    made = []
    async with await clocked.stream(follow=clocked.uid, summary="1") as stream:
        for seconds in (HOUR, -HOUR, 0):
            await clocked.jump(seconds)
            if not seconds:
                with clocked.redis.client() as redis:
                    redis.hincrby(keys.META, "ms", HOUR * 1000)
            for number in range(2):
                made.append(await clocked.post(f"{number} at {seconds}"))
                await stream.until(lambda s: sum(one["count"] for one in s.of("count")) == len(made))
        seconds_of = [one["began"] for one in stream.of("count") for _ in range(one["count"])]
    assert seconds_of == [f"{status['posted'][:19]}.000Z" for status in made]
