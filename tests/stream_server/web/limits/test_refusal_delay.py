"""The refusals of a client that does not slow down are delayed."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.connections import DELAY_SECONDS, PROMPT_REFUSALS, RefusalDelay
from tests.stream_server.web.world import World


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"limits": "reads=1"}


def test_each_address_has_prompt_refusals_in_each_second() -> None:
    now = [100.0]
    delay = RefusalDelay(lambda: now[0])
    assert [delay.seconds("a") for _ in range(PROMPT_REFUSALS)] == [0.0] * PROMPT_REFUSALS
    assert delay.seconds("a") == DELAY_SECONDS
    assert delay.seconds("b") == 0.0
    now[0] += 1
    assert delay.seconds("a") == 0.0


async def test_a_flood_of_refused_requests_is_delayed_and_others_are_not(
    world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    released = asyncio.Event()
    delay = app[LIMITS].refusal_delay
    monkeypatch.setattr(delay, "_monotonic", lambda: 100.0)  # the whole test is one second
    monkeypatch.setattr("stream_server.web.http.request_limits.asyncio.sleep", lambda _: released.wait())
    assert (await world.call("GET", "/v1/users/me", ann)).status == 200
    flood = [asyncio.create_task(world.call("GET", "/v1/users/me", ann)) for _ in range(PROMPT_REFUSALS + 5)]
    done: set[Any] = set()
    while len(done) < PROMPT_REFUSALS:
        done, waiting = await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        flood = [*done, *waiting]
    assert {task.result().status for task in done} == {429}
    assert (await world.call("GET", "/v1/users/me", bob)).status == 200
    assert sum(task.done() for task in flood) == PROMPT_REFUSALS
    released.set()
    assert {task.result().status for task in (await asyncio.wait(flood))[0]} == {429}
