"""The short way of a request to its handler gives what aiohttp's own way gives."""

import aiohttp
import pytest
from aiohttp import web

from stream_server.config.settings import Config
from stream_server.web.http.dispatch import Dispatcher
from stream_server.web.http.http_connection import HttpRunner
from stream_server.web.http.request_limits import RequestLimits
from stream_server.web.route import Handler
from tests.stream_server import tokens

REQUESTS = ("GET /plain", "GET /plain?x=1", "HEAD /plain", "POST /plain", "GET /plain/", "GET /named/7", "GET /else")


class Counters:
    """Counts nothing: the limits of this app are off."""

    def prepare(self) -> None: ...


async def show(request: web.Request) -> web.Response:
    info = request.match_info
    return web.Response(text=f"{info.route.method} {info.route.resource} {dict(info)} {request.app is not None}")


def app_with(*middlewares: str) -> web.Application:
    """Return an app whose middlewares each add a header with their name."""

    def named(name: str) -> object:
        @web.middleware
        async def add(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                response: web.StreamResponse = await handler(request)
            except web.HTTPException as error:
                response = web.Response(status=error.status, text=request.path)
            response.headers.add("Passed", name)
            return response

        return add

    app = web.Application(middlewares=[named(name) for name in middlewares])  # type: ignore[misc]  # they are middlewares
    app.router.add_get("/plain", show)
    app.router.add_get("/named/{id}", show)
    return app


async def answers(app: web.Application, config: Config) -> list[tuple[int, str, list[str]]]:
    """Return status, text and passed middlewares of each of `REQUESTS`."""
    limits = RequestLimits(config, Counters())  # type: ignore[arg-type]  # they are off
    runner = HttpRunner(app, table=limits.connections)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found = []
    async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:
        for request in REQUESTS:
            method, path = request.split(" ")
            async with session.request(method, path) as answer:
                found.append((answer.status, await answer.text(), answer.headers.getall("Passed")))
    await runner.cleanup()
    return found


@pytest.mark.parametrize("middlewares", [("one",), ("one", "two")])
async def test_requests_reach_the_same_handler_in_both_ways(
    middlewares: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tokens.config(limits="off")
    short = await answers(app_with(*middlewares), config)
    monkeypatch.setattr(Dispatcher, "__call__", lambda self, request: self._handle(request))
    assert await answers(app_with(*middlewares), config) == short
    assert [status for status, _, _ in short] == [200, 200, 200, 405, 404, 200, 404]
    assert {tuple(passed) for _, _, passed in short} == {middlewares[::-1]}
