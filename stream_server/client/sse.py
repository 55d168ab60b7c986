"""Server-Sent Events, as WHATWG HTML defines them ("Event stream interpretation").

Lines end with LF, CR or CRLF, wherever the network cuts them; a byte order mark may stand first; fields other than
``data``, ``id``, ``event`` and ``retry`` are ignored; an ``id`` with a NUL is ignored. ``event`` is not kept: the
messages of this server name their kind themselves.
"""

import re
from collections.abc import Iterator

from stream_server.client.errors import Malformed
from stream_server.client.frame import MAX_MESSAGE_BYTES, Frame

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class SseParser:
    """The blocks of one connection."""

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
        """The frames of the blocks that ``chunk`` ends; a block of ``id`` or ``retry`` alone is one too."""
        for line in self._lines(chunk):
            if line:
                self._read_field(line)
            elif (frame := self._finish_frame()) is not None:
                yield frame

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the other half of a CRLF that the network cut in two
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
        self._size += len(part)
        if self._size > MAX_MESSAGE_BYTES:
            raise Malformed(f"a message of more than {MAX_MESSAGE_BYTES} bytes")
        self._parts.append(part)

    def _without_bom(self, line: bytes) -> bytes:
        if self._first:
            self._first = False
            return line.removeprefix(_BOM)
        return line

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
        data, cursor, retry_ms = self._data, self._id, self._retry_ms
        self._data, self._id, self._retry_ms = [], None, None
        self._size = sum(map(len, self._parts))
        if not data and cursor is None and retry_ms is None:
            return None  # a comment, or nothing at all
        return Frame(b"\n".join(data) if data else None, cursor, retry_ms)
