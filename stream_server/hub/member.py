"""What the hub knows of a client: what it asked for, where it stands, and how to reach its socket."""

import asyncio
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from filters.combine import Subscription
from stream_server.events import Position
from stream_server.hub.closing import Closing
from stream_server.hub.personal import Personal

if TYPE_CHECKING:
    from stream_server.hub.group import Framing, Group


class Ask(NamedTuple):
    """One request for events: who asks, for what, in which framing, from where."""

    connection: str
    user_id: str
    jti: str
    subscription: Subscription
    framing: "Framing"
    position: Position
    personal: Personal | None


class Member:
    """A client of the hub; ``group`` is None while it catches up.

    ``position`` is the last entry *scanned* for it, matched or not; while it is live that is the hub's head.
    ``joined_n`` is the head's number when it went live. ``write`` never waits, ``backlog`` is in bytes.
    """

    __slots__ = ("_woken", "ask", "backlog", "closing", "group", "joined_n", "position", "write")

    def __init__(self, ask: Ask, write: Callable[[bytes], None], backlog: Callable[[], float]) -> None:
        self.ask = ask
        self.write = write
        self.backlog = backlog
        self.position = ask.position
        self.group: Group | None = None
        self.joined_n = 0
        self.closing: Closing | None = None
        self._woken: asyncio.Future[None] | None = None

    @property
    def group_key(self) -> Hashable:
        """Clients with equal keys share their frames; who has a filter of their own, shares with nobody."""
        ask = self.ask
        return ask.connection if ask.personal is not None else (ask.subscription.key, ask.framing)

    def close(self, closing: Closing) -> None:
        """End this client's stream; the first reason holds."""
        if self.closing is None:
            self.closing = closing
            self.wake()

    def wake(self) -> None:
        """Let :meth:`rest` return."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def rest(self) -> None:
        """Wait until the hub has something to say: refused frames, or the end."""
        if self.closing is not None:
            return
        self._woken = asyncio.get_running_loop().create_future()
        await self._woken
