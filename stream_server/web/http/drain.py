"""Shutdown of a server: refuse new streams, end open streams with a `goodbye`, and finish requests in progress."""

import asyncio
from collections.abc import Sequence

from aiohttp import web

from stream_server.errors import Unavailable
from stream_server.web.http.app_keys import HUB, SHUTDOWN
from stream_server.web.http.http_connection import HttpRunner
from stream_server.web.websocket.unproven import UNPROVEN


async def drain(
    app: web.Application, runner: HttpRunner, sites: Sequence[web.BaseSite], timeout_seconds: float
) -> None:
    """Shut down in an order in which every client gets an answer. Takes at most about ``timeout_seconds``.

    1. The hub stops: `/readyz` fails, new streams are refused with a retry delay, open streams get a `goodbye`.
    2. Meanwhile the listening sockets stay open. If they closed first, new clients would see a reset without a reason.
    3. The listening sockets close. Otherwise new requests could keep the server busy without an end. Connections
       made at this moment are reset, but the server has not acted on their requests.
    4. The requests in progress finish. Then the background tasks end and the remaining connections close.
    """
    hub, shutdown, clock = app[HUB], app[SHUTDOWN], asyncio.get_running_loop().time
    deadline = clock() + timeout_seconds
    hub.stop(shutdown.next_disconnect_reason)
    app[UNPROVEN].close_all()
    await hub.wait_until_empty(timeout_seconds / 2)
    for site in sites:
        await site.stop()
    await runner.wait_until_idle(deadline - timeout_seconds / 4 - clock())
    await hub.wait_until_empty(deadline - clock())  # streams that were just opening get their goodbye too
    await hub.background_tasks.cancel_all()
    await runner.cleanup()


def reject_when_draining(request: web.Request) -> None:
    """Raise Unavailable for a new stream or long poll while the server shuts down, because shutdown would end it."""
    if request.app[HUB].is_stopping:
        message = "this server is shutting down; retry, another server will answer"
        raise Unavailable(message, retry_after=request.app[SHUTDOWN].next_retry_after())
