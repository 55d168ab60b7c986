"""The yardstick of connects: an aiohttp server that does nothing else than the protocol.

    python -m bench.bare_server

``GET /stream`` opens a chunked answer, as a stream of our server does, and keeps it open. There are no tokens, filters
or limits.
"""

import asyncio

import uvloop
from aiohttp import web

from bench.serving import serve_forever


async def stream(request: web.Request) -> web.StreamResponse:
    """Open an answer, and keep it open until the client disconnects."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(b": hello\n\n")
    await asyncio.Event().wait()
    return response


async def serve() -> None:
    """Serve until the process ends."""
    app = web.Application()
    app.router.add_get("/stream", stream)
    await serve_forever(app)


if __name__ == "__main__":
    uvloop.run(serve())
