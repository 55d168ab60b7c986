"""Whom a stopping server turns away: new streams and polls, while what else is asked is still answered."""

from aiohttp import web

from stream_server.errors import Unavailable
from stream_server.web.http.app_keys import HUB, SHUTDOWN


def reject_when_draining(request: web.Request) -> None:
    """Raises Unavailable for a stream or a poll that would begin now: it would only be told goodbye.

    Asked before the token is looked at, since a ticket would be used up, and once more when all is planned, which is
    the last moment for a refusal. When to come back is spread as it is for those who are sent away.
    """
    if request.app[HUB].is_stopping:
        message = "this server is stopping; ask again, another one answers"
        raise Unavailable(message, retry_after=request.app[SHUTDOWN].next_retry_after())
