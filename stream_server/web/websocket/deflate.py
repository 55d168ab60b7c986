"""Compression of messages: `permessage-deflate` (RFC 7692) without context takeover.

Each message is compressed by itself. So the bytes of a frame fit behind any other frame, and all clients share them.
The length of a frame does not show whether the text of its message is like that of another message.
"""

import zlib
from collections.abc import Iterator

from stream_server.web.websocket.frames import CloseCode

EXTENSION = "permessage-deflate"

ANSWER = f"{EXTENSION}; server_no_context_takeover; client_no_context_takeover"
"""The extension as the server answers it. A server may set both parameters unasked (RFC 7692 §7.1.1)."""

MIN_COMPRESSED_BYTES = 128
"""Shorter messages, such as heartbeats, are sent as they are, because compression saves too little of them."""

MAX_CAREFUL_BYTES = 8192
"""Longest data compressed at level 6. Level 1 takes a third of the time, and more data compresses well anyway."""

MEMORY_LEVEL = 6
"""Size of the compressor's tables, as for the streams over HTTP."""

FLUSH_TAIL = b"\x00\x00\xff\xff"
"""The end of each flush, which a message leaves out (RFC 7692 §7.2.1)."""

MAX_OFFERS = 16
"""Most offers of a request that are read."""


class FrameFault(Exception):
    """The client broke the protocol. ``code`` and ``reason`` are for the close frame."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class MessageCompressor:
    """Compresses messages with two compressors, of which each forgets everything after a message.

    A new compressor for each message would take three times as long, because zlib prepares its tables.
    """

    def __init__(self) -> None:
        options = zlib.DEFLATED, -zlib.MAX_WBITS, MEMORY_LEVEL
        self._careful = zlib.compressobj(6, *options)
        self._fast = zlib.compressobj(1, *options)

    def compress(self, data: bytes) -> bytes:
        """Return the compressed payload of one message (RFC 7692 §7.2.1)."""
        compressor = self._careful if len(data) <= MAX_CAREFUL_BYTES else self._fast
        compressed = compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)
        return compressed[: -len(FLUSH_TAIL)]


class MessageInflater:
    """Expands one message as its bytes come. It never returns more than the allowed number of bytes."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)

    def inflate(self, data: bytes, max_bytes: int) -> bytes:
        """Return what ``data`` adds to the message. Raises FrameFault for more than ``max_bytes`` or invalid data."""
        try:
            expanded = self._decompressor.decompress(data, max_bytes + 1)
        except zlib.error:
            raise FrameFault(CloseCode.INVALID_DATA, "the compressed data are invalid") from None
        if len(expanded) > max_bytes:
            raise FrameFault(CloseCode.TOO_BIG, "the message is too large when expanded")
        self._check_end()
        return expanded

    def _check_end(self) -> None:
        """Refuse data behind a final block: zlib would keep them, in any amount."""
        if self._decompressor.eof and self._decompressor.unused_data not in (b"", b"\x00"):
            raise FrameFault(CloseCode.INVALID_DATA, "data follow the last block of the compressed message")

    def end(self, max_bytes: int) -> bytes:
        """Return the rest of the message, at most ``max_bytes``. Raises FrameFault as :meth:`inflate` does.

        A message may end with a final block. Then a single zero byte may come behind it (RFC 7692 §7.2.3.4, §7.2.3.5).
        """
        if self._decompressor.eof:
            return b""
        return self.inflate(FLUSH_TAIL, max_bytes)


def accepts_deflate(offers: str) -> bool:
    """Return whether one of the offers in a ``Sec-WebSocket-Extensions`` header can be answered with :data:`ANSWER`.

    An offer with `server_max_window_bits` is declined: an answer must repeat the parameter (RFC 7692 §7.1.2.1).
    An offer with unknown, repeated or invalid parameters is declined too (RFC 7692 §7).
    """
    return any(_is_acceptable(offer) for offer in offers.split(",")[:MAX_OFFERS])


def _is_acceptable(offer: str) -> bool:
    name, *parameters = (part.strip() for part in offer.split(";"))
    if name != EXTENSION:
        return False
    given = list(_parse(parameters))
    known = {key for key, _ in given}
    return len(known) == len(given) and all(_is_known(key, value) for key, value in given)


def _parse(parameters: list[str]) -> Iterator[tuple[str, str | None]]:
    for parameter in parameters:
        key, equals, value = parameter.partition("=")
        yield key.strip(), value.strip().strip('"') if equals else None


def _is_known(key: str, value: str | None) -> bool:
    if key in {"server_no_context_takeover", "client_no_context_takeover"}:
        return value is None
    # The client may compress with a smaller window; the server can read any.
    return key == "client_max_window_bits" and (value is None or value in _WINDOW_BITS)


_WINDOW_BITS = frozenset(map(str, range(8, 16)))
