"""The end of a server, in the order that leaves nobody without an answer."""

import asyncio

from aiohttp import web

from stream_server.errors import Unavailable
from stream_server.web.http.app_keys import HUB, SHUTDOWN
from stream_server.web.http.http_connection import HttpRunner


async def drain(app: web.Application, runner: HttpRunner, site: web.BaseSite, timeout_seconds: float) -> None:
    """Not ready, goodbye to everyone, no new connection, the last answers, then the rest; about ``timeout_seconds`` at most.

    It listens while the goodbyes go out, so that a balancer hears of it from ``/readyz``, a new client by a refusal
    that says when to come back, and whoever writes has an answer: a socket that is closed first tells all of them by a
    reset connection, which says nothing. It is closed before the last answers are waited for, else there might always
    be one more; connections that are made in that very instant are still reset, and nothing of what they ask is done.
    """
    hub, shutdown, clock = app[HUB], app[SHUTDOWN], asyncio.get_running_loop().time
    ends = clock() + timeout_seconds
    hub.stop(shutdown.next_disconnect_reason)
    await hub.wait_until_empty(timeout_seconds / 2)
    await site.stop()
    await runner.wait_until_idle(ends - timeout_seconds / 4 - clock())
    await hub.wait_until_empty(ends - clock())  # a stream that was just beginning is told goodbye as well
    await hub.background_tasks.cancel_all()
    await runner.cleanup()


def reject_when_draining(request: web.Request) -> None:
    """Raises Unavailable for a stream or a poll that would begin now: it would only be told goodbye.

    Asked before the token is looked at, since a ticket would be used up, and once more when all is planned, which is
    the last moment for a refusal. When to come back is spread as it is for those who are sent away.
    """
    if request.app[HUB].is_stopping:
        message = "this server is stopping; ask again, another one answers"
        raise Unavailable(message, retry_after=request.app[SHUTDOWN].next_retry_after())
