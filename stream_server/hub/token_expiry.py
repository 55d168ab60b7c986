"""Ends streams when their tokens expire.

Tokens expire at whole seconds, and many streams open within one. So the clients whose tokens expire at the same moment
share one timer: a timer of its own would take half a kilobyte, and longer to make than most of what a stream needs.

The remaining life of a token is measured when its stream opens. Then a monotonic clock counts it down, so a later jump
of the clock changes nothing. A client that comes after a jump does not share the timer of those before it.
"""

import asyncio
import math
import time
from collections.abc import Callable
from contextvars import Context
from functools import partial

from stream_server.hub.client import Client
from stream_server.hub.disconnect import TOKEN_EXPIRED

EMPTY_CONTEXT = Context()
"""The context of timers, so that a timer does not keep alive the context of the request that started it."""

SHARED_SECONDS = 0.1
"""Largest difference in seconds between the end of a client's token and the timer that it shares."""


class ExpiryGroup:
    """The clients that share a timer, which ends them at ``ends_at`` (seconds of the loop's clock)."""

    __slots__ = ("clients", "ends_at", "timer")

    def __init__(self, ends_at: float, end: Callable[["ExpiryGroup"], None]) -> None:
        """Start the timer, which calls ``end`` with this group."""
        self.clients: set[Client] = set()
        self.ends_at = ends_at
        self.timer = asyncio.get_running_loop().call_at(ends_at, end, self, context=EMPTY_CONTEXT)


class TokenExpiry:
    """The clients of one process by the moment when their tokens expire, in seconds since 1970.

    A moment has several groups only if the clock jumped between the clients.
    """

    def __init__(self) -> None:
        self._groups: dict[float, list[ExpiryGroup]] = {}

    def watch(self, client: Client) -> None:
        """Disconnect the client when its present token expires. Call :meth:`forget` before it gets another token."""
        moment = client.token.expires_at
        if not math.isfinite(moment):
            return
        ends_at = asyncio.get_running_loop().time() + max(0.0, moment - time.time())
        groups = self._groups.setdefault(moment, [])
        for group in groups:
            if abs(group.ends_at - ends_at) <= SHARED_SECONDS:
                group.clients.add(client)
                return
        groups.append(ExpiryGroup(ends_at, partial(self._end, moment)))
        groups[-1].clients.add(client)

    def forget(self, client: Client) -> None:
        """Watch a client no longer. Stop the timer that it was the last to need."""
        moment = client.token.expires_at
        for group in [one for one in self._groups.get(moment, ()) if client in one.clients]:
            group.clients.remove(client)
            if not group.clients:
                group.timer.cancel()
                self._drop(moment, group)

    def _end(self, moment: float, group: ExpiryGroup) -> None:
        self._drop(moment, group)
        for client in group.clients:
            client.disconnect(TOKEN_EXPIRED)

    def _drop(self, moment: float, group: ExpiryGroup) -> None:
        groups = self._groups[moment]
        groups.remove(group)
        if not groups:
            del self._groups[moment]
