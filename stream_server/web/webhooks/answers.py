"""Bounds the bytes of an answer before they are parsed.

The client of aiohttp bounds the length of a line and the number of fields, but not the number of interim answers (1xx),
of chunks, or of answers behind the first. It parses what one read brings without a pause. So an endpoint could hold the
event loop for seconds with answers of a few bytes each.
"""

import asyncio
from typing import cast

import aiohttp
from aiohttp.connector import Connection

MAX_RAW_BYTES = 16 * 1024
"""Most bytes of one answer that are parsed: its head, and its body with the framing. Usual answers have hundreds."""


class BoundedResponse(aiohttp.ClientResponse):
    """An answer of which at most :data:`MAX_RAW_BYTES` are parsed. A longer one costs the endpoint its connection."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Read the head. Raises what aiohttp's own raises."""
        transport = connection.transport  # None if the connection is lost already
        if transport is not None:
            before = transport.get_protocol()  # of aiohttp, or that of an earlier answer
            parser = before.parser if isinstance(before, _Bound) else cast(asyncio.Protocol, before)
            transport.set_protocol(_Bound(parser, transport))
        return await super().start(connection)


class _Bound(asyncio.Protocol):
    """Stands between a connection and the ``parser`` of aiohttp, which gets the first bytes of an answer."""

    def __init__(self, parser: asyncio.Protocol, transport: asyncio.Transport) -> None:
        self.parser = parser
        self._transport = transport
        self._room = MAX_RAW_BYTES

    def data_received(self, data: bytes) -> None:
        if not self._room:
            return
        passed = data[: self._room]
        self._room -= len(passed)
        self.parser.data_received(passed)
        if not self._room:
            # Behind the reader, which may have enough by now.
            asyncio.get_running_loop().call_soon(self._transport.abort)

    def eof_received(self) -> bool | None:
        return self.parser.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.parser.connection_lost(exc)

    def pause_writing(self) -> None:
        self.parser.pause_writing()

    def resume_writing(self) -> None:
        self.parser.resume_writing()
