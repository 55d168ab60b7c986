"""Limits how often a user connects to the streams of a dialect. Each dialect renders the error in its own format."""

from aiohttp import web

from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.rate_limit import DIALECT_CONNECTS


async def count_connect(request: web.Request) -> None:
    """Count a stream that the caller opens. Raises RateLimited above the limit ``dialect_connects`` in 15 minutes."""
    await request.app[LIMITS].use(request, DIALECT_CONNECTS)
