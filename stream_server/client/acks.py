"""Acknowledges what a program has handled of a named subscription, at most once a second and never in its way."""

import asyncio
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote

from stream_server.client.errors import ClientFailure, RequestRefused
from stream_server.client.transport import Transport

ACK_SECONDS = 1.0
"""Shortest time in seconds between two acks. The highest cursor says it all, so those in between are not sent."""


class _Handled(NamedTuple):
    """The last handled cursor, and the connection by which it came, which has some parts of a shared one."""

    cursor: str | None
    connection: str


_NOTHING = _Handled(None, "")


class Acks:
    """Sends the acks of one stream, by a task that runs while one waits.

    An ack that fails is sent again with the next cursor or after a second. One that is not sent when the program ends
    is forgotten: its events come again.
    """

    def __init__(self, transport: Transport, subscription: str) -> None:
        self._transport = transport
        self._path = f"/v1/subscriptions/{quote(subscription, safe='')}/ack"
        self._handled = self._sent = _NOTHING
        self._task: asyncio.Task[None] | None = None

    def note(self, cursor: str | None, connection: str) -> None:
        """Everything up to ``cursor``, which came by ``connection``, is handled. None stands for nothing."""
        self._handled = _Handled(cursor, connection)
        if self._handled != self._sent and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run(), name="acks of a stream")

    async def close(self) -> None:
        """End the task. If an ack waits, try once to send it; an error is ignored, so its events come again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if self._handled != self._sent:
            with suppress(ClientFailure):
                await self._send()

    async def _run(self) -> None:
        while self._handled != self._sent:
            with suppress(ClientFailure):  # it is sent again
                await self._send()
            await asyncio.sleep(ACK_SECONDS)

    async def _send(self) -> None:
        handled = self._handled
        try:
            await self._transport.request("POST", self._path, body=handled._asdict(), attempts=1)
        except RequestRefused as refused:
            if refused.is_temporary:
                raise
        # Also if the subscription is gone, or the connection has lost its part: then its events come again.
        self._sent = handled
