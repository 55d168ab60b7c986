"""Requests that take long to parse or to match, on a running server: they are charged as messages of sockets are."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import aiohttp
import pytest

from filters.registry import Registry
from filters.rules.rule import Rule
from filters.subscription import Subscription
from stream_server.web.http.chunks import MAX_CHUNKS_AT_ONCE, ChunkedBody
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.processor_time import MAX_AHEAD_SECONDS, USER_SHARE, ProcessorTime
from stream_server.web.streaming.stream_plan import parse_filters
from tests.challenge_endpoint import challenge_endpoint
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
    "a preview": ("POST", "/v1/rules/preview", {"json": {"rule": "tea", "minutes": 9}}, 200, "ann"),
    "a count": ("POST", "/v1/rules/counts", {"json": {"rules": [{"rule": "tea"}], "from": "-9m"}}, 200, "ann"),
    "recent counts": ("GET", "/2/tweets/counts/recent?query=tea", {}, 200, "ann"),
    "a recent search": ("GET", "/2/tweets/search/recent?query=tea", {}, 200, "ann"),
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
        headers = {"Authorization": f"Bearer {tokens.fresh(server.uid, 'read stream')}", **FORM, "Content-Length": "9"}
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


@pytest.mark.parametrize("path", ["/nowhere", "/v1/statuses"])
async def test_the_chunks_of_an_address_wait_for_each_other(
    redis_url: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also behind the answer, where they are dropped."""
    taken, take = list[int](), ChunkedBody.take

    def note(self: ChunkedBody, held: bytearray) -> bytes:
        before, part = len(held), take(self, held)
        taken.append(before - len(held))
        return part

    monkeypatch.setattr(ChunkedBody, "take", note)
    settings = {"limits": "on", "trusted_proxies": "127.0.0.1", "shutdown_seconds": 1.0}
    async with running_server(redis_url, settings) as server:
        limits, steps, now = server.app[LIMITS], count(), [100.0]
        limits.time = ProcessorTime(lambda: True, lambda: now[0], lambda: next(steps) * PIECE)
        head = f"POST {path} HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\nTransfer-Encoding: chunked"
        chunks, parts, connections = "1\r\na\r\n" * MAX_CHUNKS_AT_ONCE, 4, 2
        opened = [await server.send_raw(head, chunks * parts + "0\r\n\r\n") for _ in range(connections)]
        answers = [asyncio.ensure_future(reader.readuntil(b"\r\n")) for reader, _ in opened]
        await eventually(lambda: len(chunks) in taken)
        for _ in range(3):
            assert (await server.session.get("/healthz")).status == 200
        assert sum(taken) == len(chunks), "the first part of one of them"

        def are_answered() -> bool:
            now[0] += MAX_AHEAD_SECONDS
            limits.time.payer("192.0.2.1").charge(0.0)  # the accounts look at the clock now
            return all(answer.done() for answer in answers)

        await eventually(are_answered)
        for _, writer in opened:
            writer.close()


async def test_the_first_chunks_are_charged_to_the_address_that_sends_them(redis_url: str) -> None:
    """Also on the connection of a proxy, which has sent the request of another address before."""
    settings = {"limits": "on", "trusted_proxies": "127.0.0.1", "shutdown_seconds": 1.0}
    async with running_server(redis_url, settings) as server:
        limits, steps = server.app[LIMITS], count()
        limits.time = ProcessorTime(lambda: True, lambda: 100.0, lambda: next(steps) * PIECE)
        payers = [limits.time.payer(address) for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3")]
        heads = [f"POST /nowhere HTTP/1.1\r\nX-Forwarded-For: 192.0.2.{nth}\r\n" for nth in (1, 2, 3)]
        chunked, sized = "Transfer-Encoding: chunked", f"Content-Length: {MAX_CHUNKS_AT_ONCE}"
        reader, writer = await server.send_raw(heads[0] + chunked, "1\r\na\r\n0\r\n\r\n")
        assert b" 404 " in await reader.readuntil(b"\r\n")
        await eventually(lambda: payers[0].is_over)
        writer.write(f"{heads[1]}{chunked}\r\nHost: x\r\n\r\n1\r\na\r\n0\r\n\r\n".encode())
        writer.write(f"{heads[2]}{sized}\r\nHost: x\r\n\r\n{'a' * MAX_CHUNKS_AT_ONCE}".encode())
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answers = asyncio.ensure_future(reader.read())
        await eventually(answers.done)
        assert (await answers).count(b"HTTP/1.1 ") == 3
        assert [payer.is_over for payer in payers] == [True, True, False]
        writer.close()


async def test_saved_rules_are_charged_and_a_webhook_waits_for_its_user(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are parsed and put together anew for a poll and for each batch of a webhook."""
    now, work, read = [100.0], [0.0], list[str]()
    parse = Rule.parse

    def slow(text: str, registry: Registry) -> Rule:
        work[0] += PIECE
        return parse(text, registry)

    async def note(*given: Any) -> Subscription:
        read.append(given[1].description)
        return await parse_filters(*given)

    settings = {"limits": "on", "shutdown_seconds": 1.0, "webhook_networks": "127.0.0.0/8"}
    async with running_server(redis_url, settings) as server:
        session, headers = server.session, server.authorization
        body = {"rules": [{"rule": f"tea OR {'x' * 300}"}]}  # so long that it is not remembered
        async with session.post("/v1/rules", json=body, headers=headers) as answer:
            assert answer.status == 201
        monkeypatch.setattr(Rule, "parse", slow)
        monkeypatch.setattr("stream_server.web.webhooks.batches.parse_filters", note)
        limits = server.app[LIMITS]
        limits.time = ProcessorTime(lambda: True, lambda: now[0], lambda: work[0])

        async def poll() -> int:
            async with session.get("/v1/events?rules=saved&wait=0", headers=headers) as answer:
                return answer.status

        assert [await poll(), await poll()] == [200, 429]
        given = {"parameters": {"track": "tea"}, "deliver": {"url": challenge_endpoint()}}
        async with session.put("/v1/subscriptions/work", json=given, headers=headers) as answer:
            assert answer.status == 201, await answer.text()

        async def is_held() -> bool:
            async with session.get("/metrics") as answer:
                return 'stream_server_webhooks_held{worker="1"} 1' in await answer.text()

        await eventually(is_held)
        for _ in range(3):
            assert (await session.get("/healthz")).status == 200
        assert not read

        def is_read() -> bool:
            now[0] += MAX_AHEAD_SECONDS
            limits.time.payer("", server.uid).charge(0.0)  # the accounts look at the clock now
            return bool(read)

        await eventually(is_read)
