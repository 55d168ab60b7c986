"""The two framings of a stream, Server-Sent Events and one JSON object a line, and their parsers."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from stream_server.client.errors import Malformed

MAX_MESSAGE_BYTES = 16 * 2**20
"""Largest message that a parser accepts. Without this limit a stream without line ends would fill the memory."""
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Frame(NamedTuple):
    """One parsed frame: the JSON of a message or None, and, if given, a cursor (``id``) and a ``retry`` delay."""

    data: bytes | None
    cursor: str | None = None
    retry_ms: int | None = None


class FrameParser(Protocol):
    """The interface of a parser for the bytes of one connection. It takes chunks and returns complete frames."""

    media_type: str

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        """Return the frames that ``chunk`` completes. Raises Malformed for a message over ``MAX_MESSAGE_BYTES``."""


class NdjsonParser:
    """Splits the bytes of one connection into lines of JSON. Ignores empty lines, which keep the connection alive."""

    media_type = "application/x-ndjson"

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield a frame for each line that ``chunk`` completes, except empty lines."""
        first, *rest = chunk.split(b"\n")
        self._buffer(first)
        for line in rest:
            complete = b"".join(self._parts).strip()
            self._parts, self._size = [], 0
            self._buffer(line)
            if complete:
                yield Frame(complete)

    def _buffer(self, part: bytes) -> None:
        """Add bytes to the incomplete line. Raises Malformed if the line exceeds the size limit."""
        self._size += len(part)
        if self._size > MAX_MESSAGE_BYTES:
            raise Malformed(f"a line of more than {MAX_MESSAGE_BYTES} bytes")
        self._parts.append(part)


class SseParser:
    """Parses Server-Sent Events, blocks that end with an empty line, as WHATWG HTML defines them.

    Lines end with LF, CR or CRLF. A CRLF counts as one line end even if it is split between two chunks. A byte order
    mark at the start is dropped. The parser ignores fields other than ``data``, ``id`` and ``retry``, and an ``id``
    that contains a NUL. It ignores ``event`` too, because each message of this server names its kind in the JSON.
    """

    media_type = "text/event-stream"

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._data: list[bytes] = []
        self._id: str | None = None
        self._retry_ms: int | None = None
        self._size = 0
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield a frame for each block that ``chunk`` completes, also if it has only an ``id`` or ``retry``."""
        for line in self._lines(chunk):
            if line:
                self._read_field(line)
            elif (frame := self._finish_frame()) is not None:
                yield frame

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
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
            if self._first:
                self._first = False
                line = line.removeprefix(_BYTE_ORDER_MARK)
            yield line

    def _buffer(self, part: bytes) -> None:
        """Add bytes to the incomplete line. Raises Malformed if the block is over ``MAX_MESSAGE_BYTES`` now."""
        self._size += len(part)
        if self._size > MAX_MESSAGE_BYTES:
            raise Malformed(f"a message of more than {MAX_MESSAGE_BYTES} bytes")
        self._parts.append(part)

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit():
            self._retry_ms = int(value)

    def _finish_frame(self) -> Frame | None:
        """Return a frame with the fields of the block that ended, or None if it has none. Then forget the fields."""
        data, cursor, retry_ms = self._data, self._id, self._retry_ms
        self._data, self._id, self._retry_ms = [], None, None
        self._size = sum(map(len, self._parts))
        if not data and cursor is None and retry_ms is None:
            return None  # a comment or an empty block
        return Frame(b"\n".join(data) if data else None, cursor, retry_ms)
