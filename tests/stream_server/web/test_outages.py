"""Requests while Redis is unreachable or silent: a 503 that says whether the write happened, and when to retry."""

import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from aiohttp import web

from stream_server.config.settings import Config
from stream_server.store.redis.client import RedisClient
from stream_server.store.store import Store
from stream_server.web.http import app_keys
from tests.redis_process import RedisProcess, newest
from tests.stream_server.web.world import Answer, World
from tests.waiting import PATIENCE, eventually

SHORT = 1.0
"""Time for a Redis that is silent, once the users are there."""

LOG = "{core}:log"


@pytest.fixture
def redis_server() -> Iterator[RedisProcess]:
    """A Redis that a test may kill and pause."""
    with RedisProcess(newest()) as server:
        yield server


class Outage:
    """Breaks Redis after the answer to a chosen command."""

    def __init__(self, store: Store, breaks: Callable[[], None]) -> None:
        self._exchange = store._redis.run_pipeline
        self._breaks = breaks
        self._wanted: Callable[[Any], bool] | None = None
        self.fired = False
        store._redis.run_pipeline = self.run_pipeline  # type: ignore[method-assign]  # what the test is for

    def after(self, wanted: Callable[[Any], bool]) -> None:
        """Break Redis after the answer to the commands for which this is true."""
        self._wanted = wanted

    async def run_pipeline(self, commands: Any, timeout_seconds: float) -> list[Any]:
        replies = await self._exchange(commands, timeout_seconds)
        if self._wanted is not None and self._wanted(commands):
            self._wanted, self.fired = None, True
            self._breaks()
        return replies


def set_timeout(app: web.Application, seconds: float = SHORT) -> None:
    """Set the timeout of Redis and of a request."""
    link: RedisClient = app[app_keys.STORE]._redis
    config: Config = app[app_keys.CONFIG]
    link.timeout_seconds = seconds
    object.__setattr__(config, "redis_timeout_seconds", seconds)


def _unavailable_code(answer: Answer) -> str:
    """Return the code of a 503 with `Retry-After`."""
    status, code, _ = answer.error
    assert (status, answer.headers["Retry-After"]) == (503, "1")
    return code


def _post(world: World, uid: str, key: str = "") -> Awaitable[Answer]:
    headers = {"Idempotency-Key": key} if key else {}
    return world.call("POST", "/v1/statuses", uid, json={"message": "x"}, headers=headers)


def _looks_up(commands: Any) -> bool:
    return b"EXISTS" in commands[-1]


def _writes(commands: Any) -> bool:
    return bool(commands[0][0] == "EVALSHA")


@pytest.mark.parametrize(
    ("take_away", "bring_back"),
    [(RedisProcess.kill, RedisProcess.start), (RedisProcess.pause, RedisProcess.resume)],
    ids=["killed", "silent"],
)
async def test_a_redis_that_is_away_before_the_write_gives_unavailable(
    world: World,
    app: web.Application,
    redis_server: RedisProcess,
    caplog: pytest.LogCaptureFixture,
    take_away: Callable[[RedisProcess], object],
    bring_back: Callable[[RedisProcess], object],
) -> None:
    ann = await world.user("ann")
    set_timeout(app)
    take_away(redis_server)
    assert _unavailable_code(await _post(world, ann)) == "unavailable"
    refused = await world.call("GET", f"/v1/users/{ann}", ann)
    assert (_unavailable_code(refused), b"sock" in refused.body) == ("unavailable", False)
    assert (await world.call("GET", "/healthz")).status == 200
    bring_back(redis_server)
    set_timeout(app, PATIENCE)
    assert (await world.call("GET", "/v1/users/available?login=ann")).status == 200
    assert not [record for record in caplog.records if record.exc_info and record.levelno >= logging.ERROR]


async def test_a_redis_that_falls_silent_at_the_write_gives_outcome_unknown(
    world: World, app: web.Application, redis_server: RedisProcess
) -> None:
    ann = await world.user("ann")
    outage = Outage(app[app_keys.STORE], redis_server.pause)
    set_timeout(app)
    for key in ("k", ""):
        outage.after(_looks_up)
        assert _unavailable_code(await _post(world, ann, key)) == "outcome_unknown"
        assert outage.fired
        redis_server.resume()
    set_timeout(app, PATIENCE)
    first, second = await _post(world, ann, "k"), await _post(world, ann, "k")
    assert (first.status, first.body) == (201, second.body)
    assert world.redis.xlen(LOG) == 2  # what was sent while it was silent was run when it spoke again: both, once
    assert (await _post(world, ann)).status == 201
    assert world.redis.xlen(LOG) == 3


async def test_a_redis_that_falls_silent_after_the_write_gives_success(
    world: World, app: web.Application, redis_server: RedisProcess, caplog: pytest.LogCaptureFixture
) -> None:
    ann = await world.user("ann")
    # So many readers that the timelines are a second step.
    world.redis.zadd("{core}:followers:" + ann, {str(number): 1 for number in range(1000, 1100)})
    store = app[app_keys.STORE]
    outage = Outage(store, redis_server.pause)
    set_timeout(app)
    outage.after(_writes)
    answer = await _post(world, ann)
    redis_server.resume()
    assert outage.fired
    assert answer.status == 201
    assert store.syndication.failed_passes == 1
    assert "updating timelines failed" in caplog.text
    # What was sent while Redis was silent was run when it spoke again: the timelines and the end of their job.
    await eventually(lambda: world.redis.zcard(f"home:{{{ann}}}") == 1, what="the timeline")
    assert world.redis.zcard("{core}:due") == 0


async def test_a_redis_that_falls_silent_at_a_repetition_gives_outcome_unknown(
    world: World, app: web.Application, redis_server: RedisProcess
) -> None:
    ann = await world.user("ann")
    made = await _post(world, ann, "k")
    outage = Outage(app[app_keys.STORE], redis_server.pause)
    set_timeout(app)
    outage.after(_writes)
    assert _unavailable_code(await _post(world, ann, "k")) == "outcome_unknown"
    assert outage.fired
    redis_server.resume()
    set_timeout(app, PATIENCE)
    assert json.loads((await _post(world, ann, "k")).body) == json.loads(made.body)
    assert world.redis.xlen(LOG) == 1


async def test_a_refresh_without_an_answer_has_an_unknown_outcome(
    world: World, app: web.Application, redis_server: RedisProcess
) -> None:
    """The server replaced the token, and the client has the old one only: its next use ends the session."""
    await world.user("ann")
    session = await world.call("POST", "/v1/sessions", json={"login": "ann", "password": "correct horse"})
    redis_server.pause()
    set_timeout(app)
    again = {"refresh_token": session.json["refresh_token"]}
    assert _unavailable_code(await world.call("POST", "/v1/sessions", json=again)) == "outcome_unknown"
    redis_server.resume()
    set_timeout(app, PATIENCE)
    assert (await world.call("POST", "/v1/sessions", json=again)).error == (401, "token_revoked", None)
