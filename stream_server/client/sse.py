"""Parses Server-Sent Events as WHATWG HTML defines them ("Event stream interpretation").

Lines end with LF, CR or CRLF, also if the network splits a CRLF. A byte order mark at the start is dropped. The parser
ignores fields other than ``data``, ``id`` and ``retry``, and an ``id`` that contains a NUL. It ignores ``event`` too,
because each message of this server names its kind in the JSON.
"""

import re
from collections.abc import Iterator

from stream_server.client.errors import Malformed
from stream_server.client.frame import MAX_MESSAGE_BYTES, Frame

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""


class SseParser:
    """Splits the bytes of one connection into blocks, which end with an empty line."""

    media_type = "text/event-stream"

    def __init__(self) -> None:
        """Start without any buffered bytes."""
        self._parts: list[bytes] = []
        self._data: list[bytes] = []
        self._id: str | None = None
        self._retry_ms: int | None = None
        self._size = 0
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield a frame for each block that ``chunk`` completes.

        A block may hold only an ``id`` or a ``retry`` field.
        """
        for line in self._lines(chunk):
            if line:
                self._read_field(line)
            elif (frame := self._finish_frame()) is not None:
                yield frame

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        """Yield each line that ``chunk`` completes, without its line end."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF that the network split
            self._after_cr = False
        if not chunk:
            return
        self._after_cr = chunk.endswith(b"\r")
        first, *rest = _LINE_END.split(chunk)
        self._buffer(first)
        for part in rest:
            line = b"".join(self._parts)
            self._parts = []
            self._buffer(part)
            yield self._without_bom(line)

    def _buffer(self, part: bytes) -> None:
        """Keep part of an incomplete line. Raises Malformed if the block exceeds the size limit."""
        self._size += len(part)
        if self._size > MAX_MESSAGE_BYTES:
            raise Malformed(f"a message of more than {MAX_MESSAGE_BYTES} bytes")
        self._parts.append(part)

    def _without_bom(self, line: bytes) -> bytes:
        """Remove the byte order mark from the first line of the connection."""
        if self._first:
            self._first = False
            return line.removeprefix(_BOM)
        return line

    def _read_field(self, line: bytes) -> None:
        """Store the value of one field of the current block."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit():
            self._retry_ms = int(value)

    def _finish_frame(self) -> Frame | None:
        """End the current block and return its frame, or None if the block had no known field."""
        data, cursor, retry_ms = self._data, self._id, self._retry_ms
        self._data, self._id, self._retry_ms = [], None, None
        self._size = sum(map(len, self._parts))
        if not data and cursor is None and retry_ms is None:
            return None  # a comment or an empty block
        return Frame(b"\n".join(data) if data else None, cursor, retry_ms)
