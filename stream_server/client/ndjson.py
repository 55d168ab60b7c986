"""Parses a stream of one JSON object a line. An empty line only keeps the connection alive."""

from collections.abc import Iterator

from stream_server.client.errors import Malformed
from stream_server.client.frame import MAX_MESSAGE_BYTES, Frame


class NdjsonParser:
    """Splits the bytes of one connection into lines."""

    media_type = "application/x-ndjson"

    def __init__(self) -> None:
        """Start without any buffered bytes."""
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield a frame for each line that ``chunk`` completes, without empty lines."""
        first, *rest = chunk.split(b"\n")
        self._buffer(first)
        for line in rest:
            complete = b"".join(self._parts).strip()
            self._parts, self._size = [], 0
            self._buffer(line)
            if complete:
                yield Frame(complete)

    def _buffer(self, part: bytes) -> None:
        """Keep part of an incomplete line. Raises Malformed if the line exceeds the size limit."""
        self._size += len(part)
        if self._size > MAX_MESSAGE_BYTES:
            raise Malformed(f"a line of more than {MAX_MESSAGE_BYTES} bytes")
        self._parts.append(part)
