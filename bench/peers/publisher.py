"""Sends events over HTTP at a fixed rate, as simply as possible, so that it takes little CPU time."""

import asyncio
import itertools
import time
from collections.abc import Callable

HANDS = 8
"""Connections that send in turn."""


def post(path: str, body: bytes, *headers: str) -> bytes:
    """Return the bytes of a POST."""
    rows = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(rows) + "\r\n\r\n").encode() + body


async def steadily(port: int, rate: float, done: asyncio.Event, request: Callable[[int], bytes]) -> None:
    """Send ``request(number)`` ``rate`` times a second until ``done`` is set. Raises RuntimeError if one is refused."""
    start, numbers = time.monotonic(), itertools.count()

    async def hand() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while not done.is_set():
                number = next(numbers)
                await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
                writer.write(request(number))
                await _accepted(reader)
        finally:
            writer.close()

    await asyncio.gather(*(hand() for _ in range(HANDS)))


async def _accepted(reader: asyncio.StreamReader) -> None:
    status, *rows = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    length = next((row for row in rows if row.lower().startswith(b"content-length:")), b":0")
    answer = await reader.readexactly(int(length.split(b":")[1]))
    if not status.split(b" ")[1].startswith(b"2") or b'"error"' in answer:
        raise RuntimeError(f"an event was refused: {status!r} {answer[:300]!r}")
