"""Streams that a client asks for before it has the answer to its request before."""

from typing import Any

import pytest
from aiohttp import web

from stream_server.store.redis import timeout_budget
from stream_server.web.http import app_keys
from tests.stream_server.web.http.test_front_door import (
    HEALTH,
    Address,
    connected,
    open_stream,
    read_answer,
    stream_request,
)
from tests.stream_server.web.world import World


async def test_many_refused_streams_behind_a_request_are_answered(address: Address, app: web.Application) -> None:
    """None begins inside the answer of another, or the calls would be nested too deeply."""
    async with connected(address, app) as (reader, writer):
        writer.write(HEALTH + b"GET /v1/stream HTTP/1.1\r\nHost: a\r\n\r\n" * 300)
        assert [(await read_answer(reader))[0] for _ in range(301)] == [200] + [401] * 300


@pytest.mark.parametrize("method", ["GET", "POST"], ids=["by the front door", "by aiohttp"])
async def test_a_stream_behind_a_request_has_not_its_timeout(
    world: World, address: Address, app: web.Application, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The budget is for the calls of one request. A stream asks Redis for hours."""
    uid, budgets = await world.user("ann"), list[timeout_budget.TimeoutBudget | None]()
    read = app[app_keys.STORE].users.resolve_logins

    async def note(logins: Any) -> Any:
        budgets.append(timeout_budget.CURRENT.get())
        return await read(logins)

    monkeypatch.setattr(app[app_keys.STORE].users, "resolve_logins", note)
    async with connected(address, app) as (reader, writer):
        profile = stream_request(uid, "").replace(b"stream?", b"users/me?")
        writer.write(profile + stream_request(uid, "rule=from:ann", method=method))
        assert (await read_answer(reader))[0] == 200
        await open_stream(reader)
    assert budgets == [None]
