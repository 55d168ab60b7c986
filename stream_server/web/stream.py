"""``/v1/stream``: one long response, server-sent events or a JSON object a line."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import hdrs, web

from stream_server import __version__
from stream_server.hub import closing as reasons
from stream_server.hub import control
from stream_server.hub.member import Member
from stream_server.hub.subscriber import Subscriber
from stream_server.web.framing import framing, negotiate
from stream_server.web.keys import CLAIMS, CONFIG, HUB
from stream_server.web.parameters import read_parameters
from stream_server.web.sink import prepare
from stream_server.web.subscription import Plan, plan

PARAMETER_BYTES = 4
"""A stream's parameters may be so many times a write's body: 5,000 ids are 90 KB."""

LIMITS: dict[str, object] = {"track": 400, "follow": 5000, "locations": 25}

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


async def stream(request: web.Request) -> web.StreamResponse:
    """Every refusal comes before the first byte; after it the stream ends with ``goodbye`` only."""
    media_type = negotiate(request.headers.get(hdrs.ACCEPT, "*/*"))
    config = request.app[CONFIG]
    parameters = await read_parameters(request, PARAMETER_BYTES * config.body_max_bytes)
    chunked = request.version >= (1, 1)
    made = await plan(request, parameters, framing(media_type, chunked=chunked))
    response = web.StreamResponse(headers={**HEADERS, hdrs.CONTENT_TYPE: f"{media_type}; charset=utf-8"})
    if chunked:
        response.enable_chunked_encoding()
    try:
        await _serve(request, response, made)
    except ConnectionError:
        pass  # the client left; there is nobody to tell
    return response


async def _serve(request: web.Request, response: web.StreamResponse, made: Plan) -> None:
    hub, config = request.app[HUB], request.app[CONFIG]
    sink = await prepare(request, response, config.send_buffer_bytes)
    subscriber = Subscriber(hub, made.ask, sink, lost=made.lost, now_ms=hub.now_ms)
    hello = control.hello(
        made.ask.position, hub.now_ms(), made.ask.connection, LIMITS, f"stream-server/{__version__}"
    )._replace(retry_ms=config.retry_ms)
    with ending_with_token(subscriber.member, request[CLAIMS].exp):
        await subscriber.run(hello)
    await response.write_eof()


@contextmanager
def ending_with_token(member: Member, expires: float) -> Iterator[None]:
    """End ``member`` when its token expires (``exp``, seconds since 1970)."""
    loop = asyncio.get_running_loop()
    timer = loop.call_later(max(0.0, expires - time.time()), member.close, reasons.TOKEN_EXPIRED)
    try:
        yield
    finally:
        timer.cancel()
