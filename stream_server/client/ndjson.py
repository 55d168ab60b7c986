"""One JSON object a line; an empty line is a sign of life."""

from collections.abc import Iterator

from stream_server.client.errors import Malformed
from stream_server.client.frame import MAX_MESSAGE_BYTES, Frame


class NdjsonParser:
    """The lines of one connection."""

    media_type = "application/x-ndjson"

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames of the lines that ``chunk`` ends."""
        first, *rest = chunk.split(b"\n")
        self._buffer(first)
        for line in rest:
            whole = b"".join(self._parts).strip()
            self._parts, self._size = [], 0
            self._buffer(line)
            if whole:
                yield Frame(whole)

    def _buffer(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_MESSAGE_BYTES:
            raise Malformed(f"a line of more than {MAX_MESSAGE_BYTES} bytes")
        self._parts.append(part)
