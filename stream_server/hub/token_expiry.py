"""Ends streams when their tokens expire.

Tokens expire at whole seconds, and many streams open within one. So the clients whose tokens expire at the same moment
share one timer: a timer of its own would take half a kilobyte, and longer to make than most of what a stream needs.
"""

import asyncio
import math
import time
from contextvars import Context

from stream_server.hub.client import Client
from stream_server.hub.disconnect import TOKEN_EXPIRED

EMPTY_CONTEXT = Context()
"""The context of timers, so that a timer does not keep alive the context of the request that started it."""


class TokenExpiry:
    """The clients of one process by the moment when their tokens expire, in seconds since 1970."""

    def __init__(self) -> None:
        self._clients: dict[float, set[Client]] = {}
        self._timers: dict[float, asyncio.TimerHandle] = {}

    def watch(self, client: Client) -> None:
        """Disconnect the client when its present token expires. Before the client gets another one, forget it."""
        moment = client.token.expires_at
        clients = self._clients.get(moment)
        if clients is not None:
            clients.add(client)
        elif math.isfinite(moment):
            self._clients[moment] = {client}
            self._start_timer(moment)

    def forget(self, client: Client) -> None:
        """Watch a client no longer. Stop the timer that it was the last to need."""
        moment = client.token.expires_at
        clients = self._clients.get(moment, set())
        clients.discard(client)
        if not clients and self._clients.pop(moment, None) is not None:
            self._timers.pop(moment).cancel()

    def _start_timer(self, moment: float) -> None:
        loop, seconds = asyncio.get_running_loop(), max(0.0, moment - time.time())
        self._timers[moment] = loop.call_later(seconds, self._end, moment, context=EMPTY_CONTEXT)

    def _end(self, moment: float) -> None:
        """Disconnect the clients whose tokens expire at ``moment``. If the clock was set back, wait once more."""
        if time.time() < moment:
            self._start_timer(moment)
            return
        del self._timers[moment]
        for client in self._clients.pop(moment):
            client.disconnect(TOKEN_EXPIRED)
