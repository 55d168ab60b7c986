"""Access to metrics, requests of pages of other origins, and the headers of every answer."""

import asyncio
from typing import Any

import pytest
from multidict import CIMultiDict

from stream_server.web.http.app_keys import CONFIG
from tests.stream_server import tokens
from tests.stream_server.web.world import World
from tests.waiting import PATIENCE

OPERATIONS_TOKEN = "an operations token of the tests"
PAGE = "https://page.example.org"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {
        "host": "0.0.0.0",
        "operations_token": OPERATIONS_TOKEN,
        "cors_origins": f"https://other.example.org,{PAGE}",
    }


async def test_a_stranger_learns_nothing_of_the_operation(world: World) -> None:
    assert (await world.call("GET", "/metrics")).error == (401, "invalid_token", None)
    assert set((await world.call("GET", "/readyz")).json) == {"ready"}
    assert "version" not in (await world.call("GET", "/")).json
    for path in ("/", "/healthz", "/readyz", "/v1/users/me", "/nowhere"):
        answer = await world.call("GET", path)
        assert not any(character.isdigit() for character in answer.headers["Server"])


@pytest.mark.parametrize("token", ["wrong", "eyJhbGciOiJub25lIn0.e30."])
async def test_a_wrong_token_reads_no_metrics(world: World, token: str) -> None:
    answer = await world.call("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.error == (401, "invalid_token", None)


async def test_the_operations_token_and_administrators_read_metrics(world: World) -> None:
    root = await world.user("root")
    bearers = (OPERATIONS_TOKEN, tokens.fresh(root, "admin"))
    for bearer in bearers:
        headers = {"Authorization": f"Bearer {bearer}"}
        assert (await world.call("GET", "/metrics", headers=headers)).status == 200
        assert "cursor" not in (await world.call("GET", "/readyz")).json
        assert "version" in (await world.call("GET", "/", headers=headers)).json
    refused = await world.call("GET", "/metrics", root)
    assert refused.error == (403, "insufficient_scope", None)


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "CF-Connecting-IP"])
async def test_a_local_server_behind_a_proxy_is_not_open(world: World, header: str, app: Any) -> None:
    object.__setattr__(app[CONFIG], "host", "127.0.0.1")
    object.__setattr__(app[CONFIG], "forwarded_header", "CF-Connecting-IP")
    assert (await world.call("GET", "/metrics")).status == 200
    assert (await world.call("GET", "/metrics", headers={header: "198.51.100.7"})).status == 401


NAMES = {
    "localhost": 200, "localhost:8000": 200, "LOCALHOST:1": 200, "127.0.0.1:8000": 200, "127.1.2.3": 200,
    "[::1]:8000": 200, "[::1]": 200, "app.localhost:8000": 200,
    "evil.example": 401, "evil.example:8000": 401, "localhost.evil.example": 401, "127.0.0.1.evil.example": 401,
    "evillocalhost": 401, "10.0.0.1": 401, "[::2]:80": 401, "localhost@evil.example": 401, "[": 401, "": 401,
}  # fmt: skip


@pytest.mark.parametrize(("name", "status"), NAMES.items())
async def test_what_is_open_to_this_machine_is_not_open_to_a_page_whose_name_leads_here(
    world: World, app: Any, name: str, status: int
) -> None:
    """DNS rebinding: the browser of somebody on this machine sends the name of the page's site as `Host`."""
    object.__setattr__(app[CONFIG], "host", "127.0.0.1")
    assert (await world.call("GET", "/metrics", headers={"Host": name})).status == status
    assert ("version" in (await world.call("GET", "/readyz", headers={"Host": name})).json) == (status == 200)


async def test_a_page_of_an_allowed_origin_reads_and_writes(world: World) -> None:
    ann = await world.user("ann")
    asking = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    preflight = await world.call("OPTIONS", "/v1/statuses", headers=asking)
    assert (preflight.status, preflight.headers["Access-Control-Allow-Origin"]) == (204, PAGE)
    assert preflight.headers["Access-Control-Allow-Headers"] == "authorization"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    posted = await world.call("POST", "/v1/statuses", ann, json={"message": "from a page"}, headers={"Origin": PAGE})
    assert (posted.status, posted.headers["Access-Control-Allow-Origin"]) == (201, PAGE)
    refused = await world.call("GET", "/v1/users/me", headers={"Origin": PAGE})
    assert (refused.status, refused.headers["Access-Control-Allow-Origin"]) == (401, PAGE)
    assert "Access-Control-Allow-Credentials" not in posted.headers


@pytest.mark.parametrize("path", ["/v1/stream", "/2/tweets/search/stream", "/nowhere"])
async def test_a_page_of_an_allowed_origin_may_send_any_header(world: World, path: str) -> None:
    """The answer repeats what the browser asks for, if that is a list of names."""
    headers = {"Origin": PAGE, "Access-Control-Request-Method": "GET"}
    named = ["authorization,traceparent,x-b3-traceid", "authorization, cache-control", "*", "a" * 4096]
    for asked in (None, *named, "a" * 4097, "authorization; drop", "né"):
        headers |= {} if asked is None else {"Access-Control-Request-Headers": asked}
        answer = await world.call("OPTIONS", path, headers=headers)
        assert answer.status == 204
        assert answer.headers.get("Access-Control-Allow-Headers") == (asked if asked in named else None)
        assert answer.headers.getall("Vary") == ["Origin, Access-Control-Request-Headers"]
        stranger = await world.call("OPTIONS", path, headers={**headers, "Origin": "https://evil.example.org"})
        assert "Access-Control-Allow-Headers" not in stranger.headers


async def test_a_page_of_an_allowed_origin_opens_a_stream(world: World) -> None:
    ann = await world.user("ann")
    headers = {"Authorization": f"Bearer {tokens.fresh(ann)}", "Origin": PAGE}
    async with asyncio.timeout(PATIENCE), world.session.get("/v1/stream?track=tea", headers=headers) as stream:
        assert (stream.status, stream.headers["Access-Control-Allow-Origin"]) == (200, PAGE)
        assert stream.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in stream.headers["Content-Security-Policy"]


@pytest.mark.parametrize("origin", ["https://evil.example.org", f"{PAGE}.evil.example.org", "null", f"{PAGE}:8443", ""])
async def test_a_page_of_another_origin_reads_nothing(world: World, origin: str) -> None:
    asking = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    preflight = await world.call("OPTIONS", "/v1/users/me", headers=asking)
    assert preflight.status == 405
    for answer in (preflight, await world.call("GET", "/healthz", headers={"Origin": origin})):
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert answer.headers["Vary"] == "Origin"


async def test_two_origins_are_none(world: World) -> None:
    answer = await world.call("GET", "/healthz", headers=CIMultiDict([("Origin", PAGE)] * 2))
    assert "Access-Control-Allow-Origin" not in answer.headers


async def test_every_answer_has_the_safety_headers(world: World) -> None:
    ann = await world.user("ann")
    answers = [
        await world.call("GET", "/healthz"),
        await world.call("GET", "/openapi.json"),
        await world.call("GET", "/nowhere"),
        await world.call("DELETE", "/v1/sessions", ann),
        await world.call("GET", "/metrics", headers={"Authorization": f"Bearer {OPERATIONS_TOKEN}"}),
        await world.call("GET", "/v1/events?track=tea&wait=0", ann),
        await world.call("GET", "/1.1/statuses/filter.json", ann),
        await world.call("GET", "/2/tweets/search/stream", ann),
    ]
    for answer in answers:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_a_broken_request_gets_the_safety_headers_too(address: tuple[str, int]) -> None:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"NONSENSE\r\n\r\n")
    head = (await reader.read()).partition(b"\r\n\r\n")[0]
    writer.close()
    assert b"nosniff" in head
    assert b"default-src 'none'" in head
