"""Serve the page beside this file, and forward its requests to the stream server, so that both have the same origin.

    python serve.py http://127.0.0.1:8000 [PORT]

In production your reverse proxy does this. If it logs URLs, the tickets in them are harmless, because each works once.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

FOLDER = Path(__file__).parent
POLICY = {"Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'"}
"""Allow the page only its own script and its own origin."""

FORWARDED_REQUEST_HEADERS = ("Accept", "Accept-Encoding", "Authorization", "Content-Type", "Last-Event-ID")
"""Request headers that this proxy forwards to the server."""

FORWARDED_RESPONSE_HEADERS = (
    "Cache-Control", "Content-Encoding", "Content-Type", "Retry-After", "Vary", "WWW-Authenticate",
)  # fmt: skip
"""Response headers that this proxy forwards to the browser."""

SERVER = web.AppKey("server", str)
"""URL of the stream server."""

CLIENT = web.AppKey("client", aiohttp.ClientSession)
"""The HTTP session for requests to the stream server."""


async def file(request: web.Request) -> web.FileResponse:
    """Answer the page or its script."""
    return web.FileResponse(FOLDER / (request.match_info.get("name") or "index.html"), headers=POLICY)


async def forward(request: web.Request) -> web.StreamResponse:
    """Forward the request, and send the answer on chunk by chunk, so that a stream is not delayed."""
    url = URL(request.app[SERVER] + request.raw_path, encoded=True)
    headers = {name: request.headers[name] for name in FORWARDED_REQUEST_HEADERS if name in request.headers}
    forwarded = request.app[CLIENT].request(request.method, url, headers=headers, data=await request.read())
    response: web.StreamResponse = web.Response(status=502)
    with suppress(aiohttp.ClientError):
        async with forwarded as answer:
            passed_on = {name: answer.headers[name] for name in FORWARDED_RESPONSE_HEADERS if name in answer.headers}
            response = web.StreamResponse(status=answer.status, headers=passed_on)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
    return response


async def client(app: web.Application) -> AsyncIterator[None]:
    """Open the session for requests to the server. It has no total timeout, because a stream has no end.

    A compressed stream stays compressed: the browser asked for it, and reads it.
    """
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=45)
    unchanged: dict[str, Any] = {"auto_decompress": False, "skip_auto_headers": ("Accept-Encoding",)}
    async with aiohttp.ClientSession(timeout=timeout, **unchanged) as app[CLIENT]:
        yield


def main(server: str, port: int = 8080) -> None:
    """Serve until Ctrl-C."""
    app = web.Application()
    app[SERVER] = server.rstrip("/")
    app.cleanup_ctx.append(client)
    app.router.add_get("/", file)
    app.router.add_get("/{name:page[.]js}", file)
    app.router.add_route("*", "/v1/{rest:.*}", forward)
    try:
        web.run_app(app, host="127.0.0.1", port=port, access_log=None, handler_cancellation=True)
    except OSError as error:
        sys.exit(f"cannot listen on port {port}: {error.strerror}; give another one as the last argument")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} URL [PORT]")
    main(sys.argv[1], *map(int, sys.argv[2:3]))
