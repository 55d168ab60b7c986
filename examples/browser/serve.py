"""Serve the page beside this file, and pass on what it asks of the server, so that both are of one origin.

    python serve.py http://127.0.0.1:8000 [PORT]

In earnest this is your reverse proxy's work. Like any, it writes URLs into its log if it keeps one: the tickets in
them are used up by then.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import aiohttp
from aiohttp import web
from yarl import URL

FOLDER = Path(__file__).parent
POLICY = {"Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'"}
ASKED = ("Accept", "Authorization", "Content-Type", "Last-Event-ID")
ANSWERED = ("Cache-Control", "Content-Type", "Retry-After", "WWW-Authenticate")

SERVER = web.AppKey("server", str)
CLIENT = web.AppKey("client", aiohttp.ClientSession)


async def file(request: web.Request) -> web.FileResponse:
    """The page, or its script."""
    return web.FileResponse(FOLDER / (request.match_info.get("name") or "index.html"), headers=POLICY)


async def passed(request: web.Request) -> web.StreamResponse:
    """What the server answers, as it comes: a stream must not wait in here until it is long enough."""
    url = URL(request.app[SERVER] + request.raw_path, encoded=True)
    headers = {name: request.headers[name] for name in ASKED if name in request.headers}
    asked = request.app[CLIENT].request(request.method, url, headers=headers, data=await request.read())
    response: web.StreamResponse = web.Response(status=502)
    with suppress(aiohttp.ClientError):
        async with asked as answer:
            told = {name: answer.headers[name] for name in ANSWERED if name in answer.headers}
            response = web.StreamResponse(status=answer.status, headers=told)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
    return response


async def client(app: web.Application) -> AsyncIterator[None]:
    """The connections to the server; a stream has no end, so there is no limit on the whole."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=45)
    async with aiohttp.ClientSession(timeout=timeout) as app[CLIENT]:
        yield


def main(server: str, port: int = 8080) -> None:
    """Serve until Ctrl-C."""
    app = web.Application()
    app[SERVER] = server.rstrip("/")
    app.cleanup_ctx.append(client)
    app.router.add_get("/", file)
    app.router.add_get("/{name:page[.]js}", file)
    app.router.add_route("*", "/v1/{rest:.*}", passed)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, handler_cancellation=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} URL [PORT]")
    main(sys.argv[1], *map(int, sys.argv[2:3]))
