"""Subscribers of Redis that count what is published: the bytes of each entry, and the cost of more subscribers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stream_server.events.kinds import CHANNELS

READ_BYTES = 1 << 18

MESSAGE = b"*3\r\n$7\r\nmessage\r\n"
"""How Redis begins a published message."""


class Listener:
    """One subscriber of all channels of entries.

    Attributes:
        bytes: Bytes that have come.
        entries: Messages that have come.
    """

    def __init__(self) -> None:
        self.bytes = self.entries = 0

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Count until the connection ends. A message whose beginning is cut by two reads counts once."""
        carry = b""
        while data := await reader.read(READ_BYTES):
            self.bytes += len(data)
            self.entries += (carry + data).count(MESSAGE)
            carry = data[-len(MESSAGE) + 1 :]


@asynccontextmanager
async def listening(port: int, count: int = 1) -> AsyncIterator[list[Listener]]:
    """Subscribe ``count`` times at the Redis of a TCP port."""
    opened = [await _opened(port) for _ in range(count)]
    listeners = [Listener() for _ in opened]
    tasks = [asyncio.create_task(one.run(reader)) for one, (reader, _) in zip(listeners, opened, strict=True)]
    try:
        yield listeners
    finally:
        for task, (_, writer) in zip(tasks, opened, strict=True):
            task.cancel()
            writer.close()


async def _opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"SUBSCRIBE {' '.join(CHANNELS)}\r\n".encode())
    for _ in CHANNELS:
        for _ in range(6):  # *3, then length and text of `subscribe` and the channel, then the number
            await reader.readline()
    return reader, writer
