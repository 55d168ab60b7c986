"""Reads the lines of a request body while it arrives. The memory is bounded: one chunk of aiohttp and one line.

While nobody reads, aiohttp pauses the socket. So a client that sends faster than the server works waits. A chunk may
have a hundred thousand lines, so it is cut as its lines are taken, and other tasks have their turn in between.
"""

import asyncio
from codecs import BOM_UTF8
from typing import NamedTuple

from aiohttp import StreamReader, web

from stream_server.errors import BadRequest


class Line(NamedTuple):
    """A line of a body. ``number`` counts from 1, also empty lines. ``text`` is None if the line is too long."""

    number: int
    text: bytes | None


class LineReader:
    """Splits a body into lines. Empty lines are counted and left out, and so is a byte order mark before a line.

    Attributes:
        is_finished: Whether the body has ended and all of its lines were taken.
        next_number: Number of the first line that was not taken.
    """

    def __init__(self, content: StreamReader, max_line_bytes: int) -> None:
        self._content = content
        self._max_line_bytes = max_line_bytes
        self._chunk = b""
        self._at = 0
        self._partial = b""
        self._is_skipping = False
        self._seen = 0
        self._has_ended = False
        self.next_number = 1

    @property
    def is_finished(self) -> bool:
        """Whether the body has ended and all of its lines were taken."""
        return self._has_ended and self._is_used_up

    @property
    def _is_used_up(self) -> bool:
        return self._at == len(self._chunk)

    async def take(self, max_lines: int, max_bytes: int, wait_seconds: float) -> list[Line]:
        """Return the lines that have arrived, at most ``max_lines`` with together about ``max_bytes``.

        Waits for the first line up to ``wait_seconds``, and returns an empty list after that. The list is also empty
        if only empty lines have come. Raises BadRequest for a body that breaks off or has invalid framing.
        """
        await asyncio.sleep(0)  # a client that sends without a pause must not keep the others waiting
        if self._is_used_up and not self._has_ended:
            await self._receive(wait_seconds)
        # a turn passes over so many empty lines, in about half a millisecond
        taken, size, last = list[Line](), 0, self._seen + 1000
        while len(taken) < max_lines and size < max_bytes and self._seen - len(taken) < last:
            text = self._cut()
            if text is None:
                break
            line = self._end_line(text)
            if line is not None:
                taken.append(line)
                size += len(line.text or b"")
                self.next_number = line.number + 1
        return taken

    async def _receive(self, wait_seconds: float) -> None:
        try:
            async with asyncio.timeout(wait_seconds):
                chunk = await self._content.readany()
        except TimeoutError:
            return
        except web.RequestPayloadError:
            raise BadRequest("the body has invalid HTTP framing", code="malformed_body") from None
        self._has_ended = not chunk
        self._chunk, self._at = chunk or b"\n", 0  # the end of the body ends its last line

    def _cut(self) -> bytes | None:
        """Return the next line of the chunk. None if its end has not come; then its beginning is kept."""
        end = self._chunk.find(b"\n", self._at)
        if end < 0:
            self._partial += self._chunk[self._at :]
            if len(self._partial) > self._max_line_bytes:
                self._partial, self._is_skipping = b"", True
            self._chunk, self._at = b"", 0
            return None
        text, self._partial = self._partial + self._chunk[self._at : end], b""
        self._at = end + 1
        return text

    def _end_line(self, text: bytes) -> Line | None:
        """End the line that is being read, and return it. Return None if it is empty."""
        self._seen += 1
        is_too_long = self._is_skipping or len(text) > self._max_line_bytes
        self._is_skipping = False
        if is_too_long:
            return Line(self._seen, None)
        text = text.removeprefix(BOM_UTF8)
        return Line(self._seen, text) if text.strip() else None
