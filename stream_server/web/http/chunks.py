"""Reads the chunks of a request body (RFC 9112 §7.1) and passes their data on in fewer, larger chunks.

aiohttp takes a microsecond and more for each chunk, so 256 KiB in chunks of one byte would hold the event loop for 40
ms. And a handler that waits for a body would not learn that its framing is broken. So the connection reads the framing
first, and aiohttp gets valid chunks only.
"""

import re

MAX_CHUNKS_AT_ONCE = 1024
"""Most chunks that are read in one iteration of the event loop, in about half a millisecond."""

MAX_LINE_BYTES = 16_384
"""Longest line with a chunk's size, and most bytes of trailer fields. Both are read and dropped."""

_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t !-~\x80-\xff]*)?\r\n")
_HALF_SIZE_LINE = re.compile(rb"(?:[0-9A-Fa-f]{1,15}(?:[ \t]*(?:;[\t !-~\x80-\xff]*\r?)?|\r))?")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t !-~\x80-\xff]*")


class BadChunks(Exception):
    """The framing of a body is invalid."""


class ChunkedBody:
    """Reads a chunked body (RFC 9112 §7.1) from the bytes of a connection, as they come.

    Attributes:
        is_complete: Whether the last chunk and the end of its trailer fields have come.
    """

    __slots__ = ("_data_left", "_is_behind_data", "_is_in_trailers", "_trailer_bytes", "is_complete")

    def __init__(self) -> None:
        self._data_left = 0
        self._is_behind_data = self._is_in_trailers = self.is_complete = False
        self._trailer_bytes = 0

    def take(self, held: bytearray) -> bytes:
        """Remove up to :data:`MAX_CHUNKS_AT_ONCE` chunks from ``held`` and return their data as one chunk.

        The result is empty if nothing can be read yet, and has the last chunk if the body is complete. Raises
        BadChunks.
        """
        at, data = 0, list[bytes]()
        for _ in range(MAX_CHUNKS_AT_ONCE):
            start = at
            if not self._is_in_trailers:
                at = self._take_chunk(held, at, data)
            if self._is_in_trailers:
                at = self._take_trailers(held, at)
                break
            if at == start:
                break
        del held[:at]
        joined = b"".join(data)
        chunk = b"%x\r\n%b\r\n" % (len(joined), joined) if joined else b""
        return chunk + b"0\r\n\r\n" if self.is_complete else chunk

    def _take_chunk(self, held: bytearray, at: int, data: list[bytes]) -> int:
        """Append to ``data`` what has come of the chunk at index ``at`` of ``held``. Return the index behind it."""
        if not self._data_left and not self._is_behind_data:
            line = _SIZE_LINE.match(held, at)
            if line is None:
                if len(held) - at > MAX_LINE_BYTES or _HALF_SIZE_LINE.fullmatch(held, at) is None:
                    raise BadChunks
                return at
            at, self._data_left = line.end(), int(line[1], 16)
            if not self._data_left:
                self._is_in_trailers = True
                return at
        if self._data_left:
            piece = bytes(held[at : at + self._data_left])
            data.append(piece)
            at += len(piece)
            self._data_left -= len(piece)
            self._is_behind_data = not self._data_left
        if self._is_behind_data:
            end = held[at : at + 2]
            if not b"\r\n".startswith(end):
                raise BadChunks
            if len(end) == len(b"\r\n"):
                at += len(end)
                self._is_behind_data = False
        return at

    def _take_trailers(self, held: bytearray, at: int) -> int:
        while (end := held.find(b"\r\n", at)) >= 0:
            line, at = held[at:end], end + 2
            if not line:
                self.is_complete = True
                return at
            self._trailer_bytes += len(line)
            if self._trailer_bytes > MAX_LINE_BYTES or _TRAILER.fullmatch(line) is None:
                raise BadChunks
        if len(held) - at > MAX_LINE_BYTES:
            raise BadChunks
        return at


class SizedBody:
    """Reads a body of known size from the bytes of a connection, as they come.

    Attributes:
        is_complete: Whether all bytes have come.
    """

    __slots__ = ("_left", "is_complete")

    def __init__(self, size: int) -> None:
        self._left = size
        self.is_complete = not size

    def take(self, held: bytearray) -> bytes:
        """Remove the bytes of the body from ``held`` and return them."""
        piece = bytes(held[: self._left])
        del held[: self._left]
        self._left -= len(piece)
        self.is_complete = not self._left
        return piece


class DroppedBody:
    """Stands for a body whose framing is invalid. All bytes that follow are dropped.

    Attributes:
        is_complete: Always false: nobody can tell where it ends.
    """

    __slots__ = ()

    is_complete = False

    def take(self, held: bytearray) -> bytes:
        """Drop all bytes in ``held``, and return nothing."""
        held.clear()
        return b""


Body = ChunkedBody | SizedBody | DroppedBody
"""The body of a request, which takes its bytes from those that a connection holds."""
