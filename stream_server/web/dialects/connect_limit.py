"""How often somebody may connect to a dialect: each says in its own words that it was too often."""

import time

from aiohttp import web

from stream_server.errors import RateLimited
from stream_server.store.connect_rate_limiter import CONNECT_WINDOW_MINUTES, ConnectAllowance
from stream_server.web.http.app_keys import CLAIMS, CONFIG, STORE

CONNECT_ALLOWANCE = web.RequestKey("allowance", ConnectAllowance)
"""What is left of the asking user's connects; there once they were counted, which the setting ``limits`` decides."""


class TooManyConnects(RateLimited):
    """One connect too many; ``allowance`` says of how many, and until when."""

    def __init__(self, message: str, allowance: ConnectAllowance) -> None:
        super().__init__(message, retry_after=max(1.0, allowance.resets_at - time.time()))
        self.allowance = allowance


async def count_connect(request: web.Request) -> None:
    """Count a connect of the asking user; raises TooOften for one too many."""
    config = request.app[CONFIG]
    if config.limits == "off":
        return
    allowance = await request.app[STORE].connect_rate_limiter.admit(request[CLAIMS].sub, config.reconnect_limit)
    request[CONNECT_ALLOWANCE] = allowance
    if not allowance.admitted:
        message = f"you connected more than {allowance.limit} times in {CONNECT_WINDOW_MINUTES} minutes"
        raise TooManyConnects(message, allowance)
