"""Requests whose parameters take long to parse, on a running server: they are charged as messages of sockets are."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import aiohttp
import pytest

from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.processor_time import MAX_AHEAD_SECONDS, USER_SHARE, ProcessorTime
from tests.stream_server import tokens
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import eventually

PIECE = 1.0
"""Processor time in seconds that each piece of work takes by the clock of the test: far more than one may take."""

RULES = {"rule": [f"tea OR cake{nth}" for nth in range(90)]}
"""Filters that are too long to be parsed in the event loop."""

FORM = {"Content-Type": "application/x-www-form-urlencoded"}

REQUESTS: dict[str, tuple[str, str, dict[str, Any], int, str]] = {
    "a poll": ("GET", "/v1/events?rule=tea&wait=0", {}, 200, "ann"),
    "a poll by JSON": ("POST", "/v1/events?wait=0", {"json": {"track": "tea"}}, 200, "ann"),
    "a poll with many rules": ("POST", "/v1/events?wait=0", {"json": RULES}, 200, "ann"),
    "a stream by JSON": ("POST", "/v1/stream", {"json": {"no": "filter"}}, 400, "ann"),
    "a stream by a form": ("POST", "/v1/stream", {"data": "no=filter", "headers": FORM}, 400, "ann"),
    "a form without a token": ("POST", "/1.1/statuses/filter.json", {"data": "track=tea", "headers": FORM}, 401, ""),
}
"""Method, path, body, status of the first answer, and the user, "" for nobody."""


async def _status(server: RunningServer, name: str, user: str, address: str) -> tuple[int, str]:
    method, path, more, _, _ = REQUESTS[name]
    headers = {**more.get("headers", {}), "X-Forwarded-For": address}
    if user:
        headers["Authorization"] = f"Bearer {tokens.fresh(user, 'read stream')}"
    async with server.session.request(method, path, **{**more, "headers": headers}) as answer:
        return answer.status, await answer.text()


async def _sign_up(server: RunningServer, login: str) -> str:
    body = {"login": login, "name": login, "email": f"{login}@example.com", "password": "correct horse"}
    async with server.session.post("/v1/users", json=body) as answer:
        return str((await answer.json())["id"])


@pytest.mark.parametrize("name", REQUESTS)
async def test_who_takes_too_much_time_is_refused_and_others_are_not(redis_url: str, name: str) -> None:
    """Also by another connection and, for a user, from another address."""
    *_, status, user = REQUESTS[name]
    settings = {"limits": "on", "trusted_proxies": "127.0.0.1", "shutdown_seconds": 1.0}
    async with running_server(redis_url, settings) as server:
        bob = await _sign_up(server, "bob") if user else ""
        limits, ann = server.app[LIMITS], server.uid if user else ""
        steps = count()
        limits.time = ProcessorTime(lambda: True, lambda: 100.0, lambda: next(steps) * PIECE)
        first = await _status(server, name, ann, "192.0.2.1")
        assert first[0] == status, first
        again = await _status(server, name, ann, "192.0.2.2" if user else "192.0.2.1")
        assert again[0] == (420 if name.endswith("token") else 429), again
        assert "takes too much of the server's time" in again[1]
        assert limits.hits.counts()["processor_time"] == 1
        other = await _status(server, name, bob, "192.0.2.3")
        assert other[0] == status, other


@pytest.mark.parametrize("path", ["/v1/stream", "/v1/events"])
async def test_of_bodies_that_end_together_the_second_sees_what_the_first_took(redis_url: str, path: str) -> None:
    """A body is charged when it has come: who sends many but for their last bytes gets no more than one by one."""
    async with running_server(redis_url, {"limits": "on", "shutdown_seconds": 1.0}) as server:
        limits, steps, began = server.app[LIMITS], count(), count(1)
        limits.time = ProcessorTime(lambda: True, lambda: 100.0, lambda: next(steps) * PIECE)
        headers = {"Authorization": f"Bearer {tokens.fresh(server.uid, 'read stream')}", **FORM}
        all_began, bodies = asyncio.Event(), 20

        async def body() -> AsyncIterator[bytes]:
            yield b"no=fil"
            if next(began) == bodies:
                all_began.set()
            await all_began.wait()
            await server.session.get("/healthz")  # so that the server has read all heads
            yield b"ter"

        async def send() -> int:
            async with server.session.post(path, data=body(), headers=headers) as answer:
                return answer.status

        statuses = await asyncio.gather(*(send() for _ in range(bodies)))
        assert Counter(statuses) == {400: 1, 429: bodies - 1}


@pytest.mark.parametrize("parameters", [{"track": "cake"}, RULES], ids=["short", "parsed in a thread"])
async def test_the_sockets_of_a_user_wait_for_each_others_operations(
    redis_url: str, parameters: dict[str, Any]
) -> None:
    """Nothing is lost: the answers come when the time is paid. A socket of another user is answered meanwhile."""
    settings = {"limits": "on", "trusted_proxies": "127.0.0.1", "shutdown_seconds": 1.0}
    async with running_server(redis_url, settings) as server, AsyncExitStack() as stack:
        users = {"ann": server.uid, "bob": await _sign_up(server, "bob")}

        async def open_socket(user: str, address: int) -> aiohttp.ClientWebSocketResponse:
            token = tokens.fresh(users[user], "stream")
            headers = {"X-Forwarded-For": f"192.0.2.{address}", "Authorization": f"Bearer {token}"}
            closing = aiohttp.ClientWSTimeout(ws_close=0.1)  # a socket that waits for its time does not hear of the end
            opening = server.session.ws_connect("/v1/stream?track=tea", headers=headers, timeout=closing)
            made = await stack.enter_async_context(opening)
            assert (await made.receive_json())["kind"] == "hello"
            return made

        steps, now = count(), [100.0]
        piece = MAX_AHEAD_SECONDS * USER_SHARE * 0.6
        limits = server.app[LIMITS]
        limits.time = ProcessorTime(lambda: True, lambda: now[0], lambda: next(steps) * piece)
        one, other, of_bob = [await open_socket(*of) for of in (("ann", 1), ("ann", 2), ("bob", 3))]
        await one.send_json({"op": "update", "parameters": parameters})
        assert (await one.receive_json())["kind"] == "effective"
        answers = [asyncio.ensure_future(each.receive_json()) for each in (one, other)]
        for each in (one, other, of_bob):
            await each.send_json({"op": "ping"})
        assert (await of_bob.receive_json())["kind"] == "pong"
        assert not any(answer.done() for answer in answers)

        def are_answered() -> bool:
            now[0] += MAX_AHEAD_SECONDS
            for nth in (1, 2):  # the accounts look at the clock now, and not after the time that they had to wait
                limits.time.payer(f"192.0.2.{nth}", server.uid).charge(0.0)
            return all(answer.done() for answer in answers)

        await eventually(are_answered)
        assert [(await answer)["kind"] for answer in answers] == ["pong", "pong"]
