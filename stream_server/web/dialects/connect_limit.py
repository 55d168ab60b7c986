"""Limits how often a user connects to the streams of a dialect. Each dialect renders the error in its own format."""

import time

from aiohttp import web

from stream_server.errors import RateLimited
from stream_server.store.connect_rate_limiter import CONNECT_WINDOW_MINUTES, ConnectAllowance
from stream_server.web.http.app_keys import CLAIMS, CONFIG, STORE

CONNECT_ALLOWANCE = web.RequestKey("allowance", ConnectAllowance)
"""The connects that the user has left. Unset if the setting ``limits`` is off, or before the server counts."""


class TooManyConnects(RateLimited):
    """Raised if a user connects to streams too often. ``allowance`` has the limit and the time of the next reset."""

    def __init__(self, message: str, allowance: ConnectAllowance) -> None:
        super().__init__(message, retry_after=max(1.0, allowance.resets_at - time.time()))
        self.allowance = allowance


async def count_connect(request: web.Request) -> None:
    """Count a stream that the caller opens. Raises TooManyConnects above ``reconnect_limit`` in 15 minutes."""
    config = request.app[CONFIG]
    if config.limits == "off":
        return
    allowance = await request.app[STORE].connect_rate_limiter.admit(request[CLAIMS].sub, config.reconnect_limit)
    request[CONNECT_ALLOWANCE] = allowance
    if not allowance.admitted:
        message = f"you connected more than {allowance.limit} times in {CONNECT_WINDOW_MINUTES} minutes"
        raise TooManyConnects(message, allowance)
