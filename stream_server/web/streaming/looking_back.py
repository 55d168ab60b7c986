"""The turn of a request that reads the log backwards: a preview, counts, or a recent search."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.processor_time import Payer
from stream_server.web.route import Request


@asynccontextmanager
async def looking_back(request: Request) -> AsyncIterator[Payer]:
    """Let a request look back in its turn. A user has one such request at a time.

    A context, whose value pays for the time of matching. Raises `RateLimited` if the user has one already, or has taken
    too much processor time.
    """
    limits = request.app[LIMITS]
    payer = limits.payer(request)
    with limits.running(request, limits.previews):
        await payer.run_in_turn(lambda: None)  # what there is to match is known later, and is charged then
        yield payer
