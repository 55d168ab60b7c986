"""Reads the lines of a request body while it arrives. The memory is bounded: one chunk of aiohttp and one line.

While nobody reads, aiohttp pauses the socket. So a client that sends faster than the server works waits.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from aiohttp import StreamReader, web

from stream_server.errors import BadRequest


class Line(NamedTuple):
    """A line of a body. ``number`` counts from 1, also empty lines. ``text`` is None if the line is too long."""

    number: int
    text: bytes | None


class LineReader:
    """Splits a body into lines. Empty lines are counted and left out.

    Attributes:
        is_finished: Whether the body has ended and all of its lines were taken.
        next_number: Number of the first line that was not taken.
    """

    def __init__(self, content: StreamReader, max_line_bytes: int) -> None:
        self._content = content
        self._max_line_bytes = max_line_bytes
        self._lines = deque[Line]()
        self._partial = b""
        self._is_skipping = False
        self._received = 0
        self._has_ended = False
        self.next_number = 1

    @property
    def is_finished(self) -> bool:
        """Whether the body has ended and all of its lines were taken."""
        return self._has_ended and not self._lines

    async def take(self, max_lines: int, max_bytes: int, wait_seconds: float) -> list[Line]:
        """Return the lines that have arrived, at most ``max_lines`` with together about ``max_bytes``.

        Waits for the first line up to ``wait_seconds``, and returns an empty list after that. Raises BadRequest for a
        body that breaks off or has invalid framing.
        """
        if not self._lines and not self._has_ended:
            await self._receive(wait_seconds)
        taken, size = list[Line](), 0
        while self._lines and len(taken) < max_lines and size < max_bytes:
            line = self._lines.popleft()
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
        if chunk:
            self._split(chunk)
        else:
            self._has_ended = True
            self._end_line(self._partial)

    def _split(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._partial += first
        for text in others:
            self._end_line(self._partial)
            self._partial = text
        if len(self._partial) > self._max_line_bytes:
            self._partial = b""
            self._is_skipping = True

    def _end_line(self, text: bytes) -> None:
        self._received += 1
        if self._is_skipping or len(text) > self._max_line_bytes:
            self._lines.append(Line(self._received, None))
        elif text.strip():
            self._lines.append(Line(self._received, text))
        self._is_skipping = False
