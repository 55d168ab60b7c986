"""Checks of every request: access, error answers, and that no internals leak."""

import asyncio
import re
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from stream_server.build import full_version
from stream_server.web import routes
from stream_server.web.http import app_keys
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, Request
from tests.end_to_end.test_errors_page import INTERNAL, ROWS, told
from tests.stream_server import tokens
from tests.stream_server.web.world import World, replace_handler

OPEN_ROUTES = {
    "GET /", "GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json", "POST /v1/users",
    "GET /v1/users/available", "POST /v1/sessions", "GET /docs", "GET /docs/site/{path}", "GET /console/{path}",
}  # fmt: skip


def fill_path(path: str) -> str:
    """Return the path with a value for each parameter."""
    return re.sub(r"\{\w+\}", "1", path)


async def test_every_route_except_the_open_ones_needs_a_token(world: World) -> None:
    assert {f"{row.method} {row.path}" for row in routes.ROUTE_TABLE if row.scope == NO_TOKEN} == OPEN_ROUTES
    for row in routes.ROUTE_TABLE:
        answer = await world.call(row.method, fill_path(row.path))
        assert (answer.status == 401) == (row.scope != NO_TOKEN), (row.method, row.path)


async def test_every_route_needs_its_scope(world: World) -> None:
    ann = await world.user("ann")
    for row in routes.ROUTE_TABLE:
        if row.scope not in {NO_TOKEN, ANY_TOKEN}:
            others = {"read", "write", "stream", "firehose", "admin"} - {row.scope}
            answer = await world.call(row.method, fill_path(row.path), ann, scope=" ".join(others))
            assert answer.status == 403, (row.method, row.path)
            if row.dialect is None:
                assert answer.error == (403, "insufficient_scope", None), (row.method, row.path)
                assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"], (row.method, row.path)


async def test_an_undeclared_route_is_closed(app: web.Application, world: World) -> None:
    ann = await world.user("ann")
    declared: Any = app[app_keys.ROUTES]
    declared.clear()
    every_scope = "read write stream firehose admin"
    for method, headers in (("HEAD", {}), ("GET", {"TE": "trailers"})):  # only aiohttp looks beside the table
        stranger = await world.call(method, "/healthz", headers=headers)
        known = await world.call(method, "/healthz", ann, scope=every_scope, headers=headers)
        assert (stranger.status, known.status) == (401, 403)


async def test_a_fault_is_answered_as_the_page_of_errors_says(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: Request) -> web.StreamResponse:
        raise ZeroDivisionError

    ann, row = await world.user("ann"), ROWS[INTERNAL]
    replace_handler(monkeypatch, row.path, fail)
    assert told(await world.call(row.method, row.path, ann)) == row.answer


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_authorization_scheme_is_case_insensitive(world: World, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {tokens.fresh(await world.user('ann'))}"}
    assert (await world.call("GET", "/v1/users/me", headers=headers)).status == 200


async def test_an_invalid_credential_is_401_with_a_challenge(world: World, subtests: pytest.Subtests) -> None:
    for value in ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a.b.c", "Bearer é", "Token x"]:
        with subtests.test(value=value):
            answer = await world.call("GET", "/v1/users/me", headers={"Authorization": value})
            assert answer.error == (401, "invalid_token", None)
            assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="stream-server", error="invalid_token"')


async def test_a_missing_token_gets_a_challenge_without_an_error(world: World) -> None:
    """RFC 6750."""
    answer = await world.call("GET", "/v1/users/me")
    assert answer.error == (401, "invalid_token", None)
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="stream-server"'


@pytest.mark.parametrize("name", ["access_token", "token"])
@pytest.mark.parametrize("path", ["/v1/users/me", "/v1/stream", "/v1/events", "/healthz"])
async def test_a_token_in_the_url_is_refused(world: World, name: str, path: str) -> None:
    ann = await world.user("ann")
    made = tokens.fresh(ann)
    answer = await world.call("GET", f"{path}?{name}={made}", ann)
    assert answer.error == (400, "unknown_parameter", name)
    assert made not in answer.body.decode()


async def test_unknown_paths_and_methods(world: World) -> None:
    assert (await world.call("GET", "/v1/nothing")).error == (404, "not_found", None)
    refused = await world.call("PATCH", "/v1/users")
    assert refused.error == (405, "method_not_allowed", None)
    assert refused.headers["Allow"] == "GET,HEAD,POST"
    head = await world.call("HEAD", "/healthz")
    assert (head.status, head.body) == (200, b"")
    assert (await world.call("PUT", "/v1/stream")).headers["Allow"] == "GET,HEAD,POST"
    assert (await world.call("OPTIONS", "/v1/users")).error == (405, "method_not_allowed", None)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/users/me", "DELETE,GET,HEAD,PATCH"),
        ("/v1/users/me/following", "POST"),
        ("/v1/users/me/requests/sent", "GET,HEAD"),
        ("/v1/streams/ticket", "POST"),
        ("/v1/rules/delete", "POST"),
        ("/v1/rules/1", "DELETE,PUT"),
        ("/v1/statuses/1", "DELETE,GET,HEAD,PATCH"),
        ("/v1/stream", "GET,HEAD,POST"),
    ],
)
async def test_a_path_allows_its_own_methods_only(world: World, path: str, allowed: str) -> None:
    """A path such as `/v1/rules/delete` has not the methods of `/v1/rules/{id}`, and answers none of them."""
    ann = await world.user("ann")
    for method in {"GET", "PUT", "PATCH", "POST", "DELETE", "OPTIONS", "TRACE"} - set(allowed.split(",")):
        refused = await world.call(method, path, ann)
        assert (refused.error, refused.headers["Allow"]) == ((405, "method_not_allowed", None), allowed), method


@pytest.mark.parametrize(("given", "kept"), [("abc-1", True), ("a" * 64, True), ("a" * 65, False), ("a b", False)])
async def test_a_request_has_an_id(world: World, given: str, kept: bool) -> None:  # noqa: FBT001 - a table's column
    answer = await world.call("GET", "/v1/nothing", headers={"X-Request-Id": given})
    assert (answer.headers["X-Request-Id"] == given) == kept
    assert answer.headers["X-Request-Id"]


UNREAD: list[Any] = [
    ({"Content-Type": "text/plain"}, b"{}", (415, "unsupported_media_type", "Content-Type")),
    ({"Content-Type": "application/x-ndjson"}, b"{}", (415, "unsupported_media_type", "Content-Type")),
    ({"Content-Type": "application/json; charset=latin-1"}, b"{}", (415, "unsupported_media_type", "Content-Type")),
    ({"Content-Encoding": "gzip"}, b"\x1f\x8b" + b"0" * 50, (415, "unsupported_media_type", "Content-Encoding")),
    ({"Content-Encoding": "deflate"}, b"x", (415, "unsupported_media_type", "Content-Encoding")),
    ({}, b'{"message":"' + b"a" * 65536 + b'"}', (413, "too_large", None)),
]


async def test_other_types_encodings_and_large_bodies_are_refused(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    for headers, data, refusal in UNREAD:
        with subtests.test(headers=headers):
            all_headers = {"Content-Type": "application/json", **headers}
            assert (await world.call("POST", "/v1/statuses", ann, data=data, headers=all_headers)).error == refusal
            assert world.redis.xlen("{core}:log") == 0


async def test_a_chunked_body_is_refused_at_the_limit(world: World) -> None:
    ann = await world.user("ann")
    sent = 0

    async def endless() -> Any:
        nonlocal sent
        while True:
            sent += 16384
            yield b" " * 16384
            await asyncio.sleep(0)  # lets the server read and refuse the body meanwhile

    headers = {"Content-Type": "application/json"}
    try:
        answer = await world.call("POST", "/v1/statuses", ann, data=endless(), headers=headers)
        assert answer.error == (413, "too_large", None)
    except aiohttp.ClientConnectionError:
        pass  # the client was still writing when the server had said no and closed
    assert sent < 64 * 2**20


async def test_an_internal_error_is_a_plain_500_and_logged_once(
    world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ann = await world.user("ann")

    async def broken(uid: str) -> bytes:
        raise RuntimeError("redis://secret@inside:6379 at /some/path")

    monkeypatch.setattr(app[app_keys.STORE].users, "get_own", broken)
    answer = await world.call("GET", "/v1/users/me", ann)
    assert answer.error == (500, "internal", None)
    assert b"inside" not in answer.body
    failures = [record for record in caplog.records if record.exc_info]
    assert len(failures) == 1
    assert failures[0].request_id == answer.headers["X-Request-Id"]  # type: ignore[attr-defined]  # logged as extra


async def test_health_readiness_and_the_root_page(world: World, app: web.Application) -> None:
    assert (await world.call("GET", "/healthz")).json == {"alive": True}
    assert (await world.call("GET", "/readyz")).json == {"ready": True, "version": full_version(), "lag_ms": 0}
    assert (await world.call("GET", "/")).json["name"] == "stream-server"


async def test_readiness_can_fail(world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch) -> None:
    state: Any = app._state  # the app itself is frozen while it serves
    by_aiohttp = {"TE": "trailers"}  # the front door has the values that the app had when it opened
    monkeypatch.setitem(state, app_keys.READINESS_CHECK, lambda: (False, {"lag_ms": 5000}))
    answer = await world.call("GET", "/readyz", headers=by_aiohttp)
    assert (answer.status, answer.json["error"]["code"], answer.json["lag_ms"]) == (503, "unavailable", 5000)
    assert answer.headers["Retry-After"] == "1"
    monkeypatch.setitem(state, app_keys.READINESS_CHECK, lambda: (False, {"reason": "the core is gone"}))
    answer = await world.call("GET", "/readyz", headers=by_aiohttp)
    assert (answer.json["error"]["message"], "reason" in answer.json) == ("the core is gone", False)


async def test_metrics_name_routes_and_codes_only(world: World, app: web.Application) -> None:
    await world.call("GET", "/v1/users/4711-and-more")
    await world.call("GET", "/made-up")
    await world.call("PROPFIND", "/made-up")
    app[app_keys.METRICS].watch("stream_server_streams", lambda: 7)
    text = (await world.call("GET", "/metrics")).body.decode()
    assert 'stream_server_http_requests_total{method="GET",route="/v1/users/{id}",status="401",worker="1"} 1.0' in text
    assert 'stream_server_http_refusals_total{code="invalid_token",worker="1"} 1.0' in text
    assert 'stream_server_streams{worker="1"} 7.0' in text
    assert "4711-and-more" not in text
    assert "made-up" not in text
    assert "PROPFIND" not in text
