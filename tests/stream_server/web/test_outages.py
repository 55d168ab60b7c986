"""Requests while Redis is away or silent: a 503 that says when to come back, and whether anything was written."""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from aiohttp import web

from stream_server.config.settings import Config
from stream_server.store.redis.client import RedisClient
from stream_server.store.store import Store
from stream_server.web.http import app_keys
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.web.world import Answer, World

SHORT = 1.0
"""Time for a Redis that is silent, once the users are there."""

LOG = "{core}:log"


@pytest.fixture
def redis_server() -> Iterator[RedisProcess]:
    """One that a test may kill and pause."""
    found = binaries()
    with RedisProcess(found.get("path") or found["wheel"]) as server:
        yield server


class Outage:
    """Breaks Redis when a script with this many arguments or more was answered, or at once."""

    def __init__(self, store: Store, breaks: Callable[[], None]) -> None:
        self._exchange = store._redis.run_pipeline
        self._breaks = breaks
        self._wanted: Callable[[Any], bool] | None = None
        self.fired = False
        store._redis.run_pipeline = self.exchange  # type: ignore[method-assign]  # what the test is for

    def behind(self, wanted: Callable[[Any], bool]) -> None:
        """Break it right behind the answer to the commands of which this is true."""
        self._wanted = wanted

    async def exchange(self, commands: Any, timeout_seconds: float) -> list[Any]:
        """One round trip, and perhaps the last one."""
        replies = await self._exchange(commands, timeout_seconds)
        if self._wanted is not None and self._wanted(commands):
            self._wanted, self.fired = None, True
            self._breaks()
        return replies


def hurry(app: web.Application, seconds: float = SHORT) -> None:
    """From now on Redis has so long to answer, and a request has."""
    link: RedisClient = app[app_keys.STORE]._redis
    config: Config = app[app_keys.CONFIG]
    link.timeout_seconds = seconds
    object.__setattr__(config, "redis_timeout_seconds", seconds)


def _refused(answer: Answer) -> str:
    """Its code; a 503 of ours with the header."""
    status, code, _ = answer.error
    assert (status, answer.headers["Retry-After"]) == (503, "1")
    return code


def _post(world: World, uid: str, key: str = "") -> Awaitable[Answer]:
    headers = {"Idempotency-Key": key} if key else {}
    return world.call("POST", "/v1/statuses", uid, json={"message": "x"}, headers=headers)


def _looks_up(commands: Any) -> bool:
    return bool(commands[-1][0] == "EXISTS")


def _writes(commands: Any) -> bool:
    return bool(commands[0][0] == "EVALSHA")


async def test_a_redis_that_is_gone(world: World, redis_server: RedisProcess) -> None:
    """Nobody was asked: neither what is read nor what is written was."""
    ann = await world.user("ann")
    redis_server.kill()
    assert _refused(await _post(world, ann)) == "unavailable"
    assert _refused(await world.call("GET", f"/v1/users/{ann}", ann)) == "unavailable"
    redis_server.start()


async def test_a_redis_that_is_silent_before_the_write(
    world: World, app: web.Application, redis_server: RedisProcess
) -> None:
    """Whose request it is could not be looked up, so it was not tried."""
    ann = await world.user("ann")
    hurry(app)
    redis_server.pause()
    assert _refused(await _post(world, ann)) == "unavailable"
    assert _refused(await world.call("GET", f"/v1/users/{ann}", ann)) == "unavailable"
    redis_server.resume()


async def test_a_redis_that_falls_silent_at_the_write(
    world: World, app: web.Application, redis_server: RedisProcess
) -> None:
    """It may have been written; repeated under its key there is one post, and without a key there is another."""
    ann = await world.user("ann")
    outage = Outage(app[app_keys.STORE], redis_server.pause)
    hurry(app)
    for key in ("k", ""):
        outage.behind(_looks_up)
        assert _refused(await _post(world, ann, key)) == "outcome_unknown"
        assert outage.fired
        redis_server.resume()
    hurry(app, 10.0)
    first, second = await _post(world, ann, "k"), await _post(world, ann, "k")
    assert (first.status, first.body) == (201, second.body)
    assert world.redis.xlen(LOG) == 2  # what was sent while it was silent was run when it spoke again: both, once
    assert (await _post(world, ann)).status == 201
    assert world.redis.xlen(LOG) == 3


async def test_a_redis_that_falls_silent_behind_the_write(
    world: World, app: web.Application, redis_server: RedisProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """The write is answered: a job worker updates the timelines later, and the log says so."""
    ann = await world.user("ann")
    store = app[app_keys.STORE]
    outage = Outage(store, redis_server.pause)
    hurry(app)
    outage.behind(_writes)
    answer = await _post(world, ann)
    redis_server.resume()
    assert outage.fired
    assert answer.status == 201
    assert store.syndication.failed_passes == 1
    assert "updating timelines failed" in caplog.text
    assert world.redis.zcard("{core}:due") == 1


async def test_a_redis_that_falls_silent_before_the_answer_was_read(
    world: World, app: web.Application, redis_server: RedisProcess
) -> None:
    """What was made under the key before is looked up for the answer: it was written, so nobody says otherwise."""
    ann = await world.user("ann")
    made = await _post(world, ann, "k")
    outage = Outage(app[app_keys.STORE], redis_server.pause)
    hurry(app)
    outage.behind(_writes)
    assert _refused(await _post(world, ann, "k")) == "outcome_unknown"
    assert outage.fired
    redis_server.resume()
    hurry(app, 10.0)
    assert json.loads((await _post(world, ann, "k")).body) == json.loads(made.body)
    assert world.redis.xlen(LOG) == 1


async def test_a_used_refresh_token_is_not_said_to_be_unused(
    world: World, app: web.Application, redis_server: RedisProcess
) -> None:
    """Taking it was the write, and what fails behind it does not give it back."""
    await world.user("ann")
    session = await world.call("POST", "/v1/sessions", json={"login": "ann", "password": "correct horse"})
    outage = Outage(app[app_keys.STORE], redis_server.pause)
    hurry(app)
    outage.behind(_writes)
    again = {"refresh_token": session.json["refresh_token"]}
    assert _refused(await world.call("POST", "/v1/sessions", json=again)) == "outcome_unknown"
    assert outage.fired
    redis_server.resume()
    hurry(app, 10.0)
    assert (await world.call("POST", "/v1/sessions", json=again)).status == 401
