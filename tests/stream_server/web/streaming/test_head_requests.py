"""A HEAD request to a stream is answered with the head of the GET, and opens nothing (RFC 9110 §9.3.2)."""

from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from stream_server.web.http.app_keys import HUB
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.routes import ROUTE_TABLE
from tests.stream_server import tokens
from tests.stream_server.web.world import World

PAGE = "https://page.example.org"
SCOPES = "read stream firehose"
PARAMETERS = {
    "/v1/stream": "track=tea",
    "/v1/events": "track=tea&wait=0",
    "/1.1/statuses/filter.json": "track=tea",
    "/2/tweets/counts/recent": "query=tea",
    "/2/tweets/search/recent": "query=tea",
}
SEARCH = "/2/tweets/search/stream"
STREAMS = [row.path for row in ROUTE_TABLE if row.method == "GET" and row.is_streaming]
OF_THE_BODY = {
    "Content-Length", "Transfer-Encoding", "Connection", "Date", "x-rate-limit-remaining", "x-rate-limit-reset",
}  # fmt: skip
"""Headers that a HEAD may leave out, or that time changes."""


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"cors_origins": PAGE, "limits": "on"}


async def head_of(world: World, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, dict[str, str]]:
    """Return status and headers of an answer. That of a HEAD must have no body."""
    timeout = aiohttp.ClientTimeout(total=20)
    async with world.session.request(method, path, headers=headers, timeout=timeout) as answer:
        assert method == "GET" or await answer.read() == b""
        kept = {name: value for name, value in answer.headers.items() if name not in OF_THE_BODY}
        return answer.status, kept | {"RateLimit-Remaining": str("RateLimit-Remaining" in kept)}


VARIANTS: tuple[dict[str, str], ...] = (
    {}, {"Accept": "text/event-stream"}, {"Accept-Encoding": "gzip", "Origin": PAGE},
)  # fmt: skip


@pytest.mark.parametrize("path", STREAMS)
async def test_the_head_is_that_of_the_get(app: web.Application, world: World, path: str) -> None:
    ann = await world.user("ann")
    for more in VARIANTS:
        headers = {"Authorization": f"Bearer {tokens.fresh(ann, SCOPES)}", "X-Request-Id": "same", **more}
        streams = len(app[HUB].registry), app[LIMITS].streams.total()
        parameters = PARAMETERS.get(path, "").replace("wait=0", "wait=60")  # it does not wait
        asked = await head_of(world, "HEAD", f"{path}?{parameters}", headers)
        assert (len(app[HUB].registry), app[LIMITS].streams.total()) <= streams
        assert asked[0] == (409 if path == SEARCH else 200), more  # the user has no rules
        assert asked == await head_of(world, "GET", f"{path}?{PARAMETERS.get(path, '')}", headers), more


@pytest.mark.parametrize("path", STREAMS)
async def test_it_is_refused_as_the_get(world: World, path: str) -> None:
    ann = await world.user("ann")
    is_one_answer = path.endswith("/recent")  # it does not look at `Accept`, like all answers that are JSON
    for wrong in ("token", "scope", "parameter", *(() if is_one_answer else ("accept",))):
        token = "wrong" if wrong == "token" else tokens.fresh(ann, "read" if wrong == "scope" else SCOPES)
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "same"}
        headers |= {"Accept": "image/png", "Accept-Encoding": "identity;q=0"} if wrong == "accept" else {}
        bad = "track=&count=x&backfill_minutes=99&tweet.fields=x"
        query = bad if wrong == "parameter" else PARAMETERS.get(path, "")
        asked, got = [await head_of(world, method, f"{path}?{query}", headers) for method in ("HEAD", "GET")]
        assert 400 <= got[0] < 500, (wrong, got)
        assert asked == got, wrong


async def test_a_ticket_is_not_used_up(world: World) -> None:
    ann = await world.user("ann")
    ticket = (await world.call("POST", "/v1/streams/ticket", ann)).json["ticket"]
    path = f"/v1/stream?track=tea&ticket={ticket}"
    for _ in range(2):
        assert (await world.call("HEAD", path)).status == 200
    async with world.session.get(path) as stream:
        assert stream.status == 200
    assert (await world.call("HEAD", path)).status == 401


async def test_no_websocket_opens(world: World) -> None:
    ann = await world.user("ann")
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    assert (await world.call("HEAD", "/v1/stream?track=tea", headers=upgrade)).status == 401
    answer = await world.call("HEAD", "/v1/stream?track=tea", ann, headers=upgrade)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-ndjson; charset=utf-8")
