"""Keeps open streams going when their token is renewed: the new token is put in place of the old one."""

import asyncio
from urllib.parse import quote
from weakref import WeakSet

from stream_server.client.errors import ClientFailure, RequestRefused
from stream_server.client.stream import Stream
from stream_server.client.tokens import RETRY_SECONDS
from stream_server.client.transport import Transport

MIN_PAUSE_SECONDS = 0.05
"""Shortest time between two looks at the token, so that a token of a very short life does not keep the loop busy."""


class StreamProlonger:
    """Gives each open stream the next token when the present one has reached 80 % of its lifetime.

    One task does this for all streams of a client, while there are any. If a stream cannot be prolonged, it ends with
    its token, and then reconnects with the new one: nothing is lost.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._streams: WeakSet[Stream] = WeakSet()
        self._task: asyncio.Task[None] | None = None

    def add(self, stream: Stream) -> None:
        """Look after a stream that has connected."""
        self._streams.add(stream)
        if self._transport.tokens.can_renew and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run(), name="stream prolonger")

    async def close(self) -> None:
        """Close all streams, and stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.gather(*(stream.close() for stream in list(self._streams)))

    async def _run(self) -> None:
        """Prolong until no stream is open, or the lifetime of the token is unknown."""
        while self._open():
            is_done = await self._prolong_all()
            due_in = self._transport.tokens.seconds_to_renewal() if is_done else RETRY_SECONDS
            if due_in is None:
                return
            await asyncio.sleep(max(due_in, MIN_PAUSE_SECONDS))

    def _open(self) -> list[Stream]:
        return [stream for stream in self._streams if stream.connection is not None]

    async def _prolong_all(self) -> bool:
        """Return whether every stream goes on with the present token, or needs no other attempt."""
        try:
            token = await self._transport.tokens.get()
        except Exception:  # noqa: BLE001 - a function of the user may raise anything; the next reconnect tells it
            return not self._open()
        return all([await self._prolong(stream, token) for stream in self._open() if stream.token != token])

    async def _prolong(self, stream: Stream, token: str) -> bool:
        path = f"/v1/streams/{quote(stream.connection or '', safe='')}/token"
        try:
            await self._transport.request("POST", path, token=token, attempts=1)
        except RequestRefused as refused:
            return not refused.is_temporary  # such as 404: the stream has ended, and reconnects with this token
        except ClientFailure:
            return False
        stream.token = token
        return True
