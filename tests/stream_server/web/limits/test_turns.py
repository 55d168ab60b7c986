"""Turns of the requests of one address, in memory and on a running server."""

import asyncio
import math
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from stream_server.errors import Unavailable
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits import connections
from stream_server.web.limits.connections import MAX_RUNNING, SHARED_SECONDS, Turns
from tests.stream_server import tokens
from tests.stream_server.web.world import World
from tests.waiting import eventually


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"limits": "on"}


class Crowd:
    """Requests that run until a test ends them."""

    def __init__(self) -> None:
        self.now = 100.0
        self.turns = Turns(lambda: self.now)
        self.running: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def share(self) -> None:
        """Let another address send a request, so that the limit holds."""
        await self.start("another's", "b")
        await self.end("another's")
        await self.start("first", "a")
        await self.end("first")

    async def start(self, name: str, address: str = "a") -> None:
        """Start a request and let it come as far as it can."""
        self._ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._run(name, address))
        await settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self.tasks[name]
        await settle()

    async def _run(self, name: str, address: str) -> None:
        async with self.turns.turn(address):
            self.running.append(name)
            await self._ends[name].wait()
            self.running.remove(name)


async def settle() -> None:
    """Let every task run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_requests_of_one_address_wait_in_order_and_others_do_not() -> None:
    crowd = Crowd()
    await crowd.share()
    for nth in range(MAX_RUNNING + 2):
        await crowd.start(str(nth))
    await crowd.start("other", "b")
    first = [str(nth) for nth in range(MAX_RUNNING)]
    assert crowd.running == [*first, "other"]
    await crowd.end("0")
    assert crowd.running == [*first[1:], "other", str(MAX_RUNNING)]
    for name in (*first[1:], str(MAX_RUNNING), str(MAX_RUNNING + 1), "other"):
        await crowd.end(name)
    crowd.tasks.clear()
    assert not crowd.turns._lines, "nothing is kept of an address without requests"


async def test_an_address_alone_has_no_limit() -> None:
    crowd = Crowd()
    for nth in range(30):
        await crowd.start(str(nth))
    assert len(crowd.running) == 30
    await crowd.start("other", "b")
    await crowd.start("late")
    assert "late" not in crowd.running
    for nth in range(30 - MAX_RUNNING):
        await crowd.end(str(nth))
    assert "late" not in crowd.running, "the requests that run already count"
    await crowd.end(crowd.running[0])
    assert "late" in crowd.running


async def test_the_limit_ends_when_the_others_are_gone() -> None:
    crowd = Crowd()
    await crowd.share()
    for nth in range(20):
        await crowd.start(str(nth))
    assert len(crowd.running) == MAX_RUNNING
    crowd.now += SHARED_SECONDS
    await crowd.end("0")
    assert len(crowd.running) == 19


async def test_a_turn_that_comes_with_the_cancellation_goes_to_the_next() -> None:
    crowd = Crowd()
    await crowd.share()
    for nth in range(MAX_RUNNING + 2):
        await crowd.start(str(nth))
    crowd.turns._lines["a"].give_back()  # gives the turn; the task has not run yet
    crowd.tasks[str(MAX_RUNNING)].cancel()
    await settle()
    assert crowd.running[-1] == str(MAX_RUNNING + 1)


async def test_a_request_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_WAIT_SECONDS", 0.02)
    crowd = Crowd()
    await crowd.share()
    for nth in range(MAX_RUNNING + 1):
        await crowd.start(str(nth))
    with pytest.raises(Unavailable):
        await crowd.tasks[str(MAX_RUNNING)]
    for nth in range(MAX_RUNNING):
        await crowd.end(str(nth))
    assert crowd.turns._lines["a"]._free == MAX_RUNNING


async def test_a_turn_can_be_given_back_for_a_while() -> None:
    crowd = Crowd()
    await crowd.share()
    for nth in range(MAX_RUNNING - 1):
        await crowd.start(str(nth))
    turn = crowd.turns.turn("a")
    async with turn:
        await crowd.start("waiting")
        assert "waiting" not in crowd.running
        async with turn.given_back():
            await settle()
            assert "waiting" in crowd.running
            await crowd.end("waiting")
    with pytest.raises(ValueError, match="broken"):
        async with turn, turn.given_back():
            raise ValueError("broken")
    assert crowd.turns._lines["a"]._free == 1


@given(st.lists(st.tuples(st.sampled_from(["start", "end", "cancel"]), st.integers(0, 9)), max_size=60))
def test_at_most_four_run_and_none_waits_beside_a_free_turn(steps: list[tuple[str, int]]) -> None:
    async def play() -> None:
        crowd = Crowd()
        await crowd.share()
        for step, (action, which) in enumerate(steps):
            live = [name for name, task in crowd.tasks.items() if not task.done()]
            if action == "start":
                await crowd.start(str(step))
            elif live and action == "end" and crowd.running:
                await crowd.end(crowd.running[which % len(crowd.running)])
            elif live and action == "cancel":
                name = live[which % len(live)]
                crowd.tasks[name].cancel()
                crowd.running = [each for each in crowd.running if each != name]
                await settle()
            live = [name for name, task in crowd.tasks.items() if not task.done()]
            assert len(crowd.running) == min(len(live), MAX_RUNNING)
        for task in crowd.tasks.values():
            task.cancel()
        await asyncio.gather(*crowd.tasks.values(), return_exceptions=True)
        assert {line._free for line in crowd.turns._lines.values()} <= {MAX_RUNNING}

    asyncio.run(play())


async def test_slow_bodies_do_not_hold_up_other_requests_of_their_address(world: World, app: web.Application) -> None:
    ann = await world.user("ann")
    app[LIMITS].turns._shared_until = math.inf
    head = (
        f"POST /v1/statuses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tokens.fresh(ann, 'read write')}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    url = world.session._base_url
    assert url is not None
    opened = [await asyncio.open_connection(url.host, url.port) for _ in range(MAX_RUNNING * 3)]
    for _, writer in opened:
        writer.write(head.encode())
    assert (await world.call("GET", "/v1/users/me", ann)).status == 200
    lines = app[LIMITS].turns._lines
    free = lambda: [line._free for line in lines.values()] == [MAX_RUNNING]  # noqa: E731 - read below
    await eventually(free, what="no turn held by a body")
    for _, writer in opened:
        writer.close()


async def test_health_checks_do_not_wait(world: World, app: web.Application) -> None:
    held = app[LIMITS].turns
    held._shared_until = math.inf
    places = [await held.turn("127.0.0.1").__aenter__() for _ in range(MAX_RUNNING)]
    assert (await world.call("GET", "/healthz")).status == 200
    assert (await world.call("GET", "/metrics")).status == 200
    for place in places:
        place.give_back()
