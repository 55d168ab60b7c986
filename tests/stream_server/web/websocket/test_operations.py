"""Operations of open WebSockets that meet each other."""

import asyncio
from typing import Any

import pytest

from stream_server.web.http.request_limits import LIMITS
from stream_server.web.streaming.stream_plan import bind_filters
from stream_server.web.websocket import operations
from tests.stream_server import tokens
from tests.stream_server.web.running_server import running_server


async def test_another_token_does_not_take_over_what_the_first_one_may(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scopes are checked when the filters come into force: the token may have been replaced after the request."""
    asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def bind_later(*arguments: Any) -> Any:
        asked.set()
        await may_go_on.wait()
        return await bind_filters(*arguments)

    monkeypatch.setattr(operations, "bind_filters", bind_later)
    async with (
        running_server(redis_url, {"shutdown_seconds": 1.0}) as server,
        server.session.ws_connect("/v1/stream?track=a", headers=server.authorization) as socket,
    ):
        assert (await socket.receive_json())["kind"] == "hello"
        await socket.send_json({"op": "update", "parameters": {"firehose": True}, "id": 1})
        await asked.wait()
        await socket.send_json({"op": "token", "token": tokens.fresh(server.uid, "stream"), "id": 2})
        prolonged = await socket.receive_json()
        assert (prolonged["kind"], prolonged["id"]) == ("token", 2)
        may_go_on.set()
        refused = await socket.receive_json()
        assert (refused["kind"], refused["id"]) == ("error", 1)
        assert refused["error"]["code"] == "insufficient_scope"


async def test_a_limit_that_an_operation_meets_is_counted(redis_url: str) -> None:
    """The operator sees it as one that a request has met."""
    limits = {"limits": "connects=1", "shutdown_seconds": 1.0}
    async with (
        running_server(redis_url, limits) as server,
        server.session.ws_connect("/v1/stream?track=a", headers=server.authorization) as socket,
    ):
        assert (await socket.receive_json())["kind"] == "hello"
        await socket.send_json({"op": "update", "parameters": {"track": "b"}})
        assert (await socket.receive_json())["error"]["code"] == "rate_limited"
        assert server.app[LIMITS].hits.counts()["connects"] == 1


async def test_a_token_in_the_first_message_uses_the_limit_of_connects(redis_url: str) -> None:
    async with running_server(redis_url, {"limits": "connects=1", "shutdown_seconds": 1.0}) as server:
        for kind in ("hello", "error"):
            async with server.session.ws_connect("/v1/stream?track=a") as socket:
                await socket.send_json({"op": "token", "token": tokens.fresh(server.uid, "stream")})
                answer = await socket.receive_json()
                assert answer["kind"] == kind
        assert answer["error"]["code"] == "rate_limited"


async def test_wrong_tokens_are_counted_for_their_address(redis_url: str) -> None:
    async with (
        running_server(redis_url, {"limits": "anonymous=3", "shutdown_seconds": 1.0}) as server,
        server.session.ws_connect("/v1/stream?track=a", headers=server.authorization) as socket,
    ):
        assert (await socket.receive_json())["kind"] == "hello"
        codes = []
        for _ in range(4):
            await socket.send_json({"op": "token", "token": "a guess"})
            codes.append((await socket.receive_json())["error"]["code"])
        assert (codes[0], codes[-1]) == ("invalid_token", "rate_limited")
