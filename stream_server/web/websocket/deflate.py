"""Compression of messages: `permessage-deflate` (RFC 7692) without context takeover.

Each message is compressed by itself. So the bytes of a frame fit behind any other frame, and all clients share them.
The length of a frame does not show whether the text of its message is like that of another message.
"""

import zlib
from collections.abc import Iterator

from websockets.exceptions import NegotiationError, PayloadTooBig
from websockets.extensions import Extension
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode

from stream_server.web.streaming.compression import MAX_CAREFUL_BYTES, MEMORY_LEVEL

EXTENSION = "permessage-deflate"

ANSWER = f"{EXTENSION}; server_no_context_takeover; client_no_context_takeover"
"""The extension as the server answers it. A server may set both parameters unasked (RFC 7692 §7.1.1)."""

MIN_COMPRESSED_BYTES = 128
"""Shorter messages, such as heartbeats, are sent as they are, because compression saves too little of them."""

_NEGOTIATION = ServerPerMessageDeflateFactory(server_no_context_takeover=True, client_no_context_takeover=True)


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
        return compressed[: -len(b"\x00\x00\xff\xff")]  # a message leaves out the end of each flush


class MessageInflater(Extension):
    """Expands the messages of one client. It counts their bytes before.

    The library keeps what a client sends behind a final block of a message, so the expanded size is not enough.
    """

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes`` is the largest size of a message in bytes, before it is expanded."""
        _, self._inflater = _NEGOTIATION.process_request_params([], [])
        self._max_bytes = max_bytes
        self._raw_bytes = 0

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        """Return ``frame`` with its data expanded. A frame that is not compressed stays as it is.

        Raises PayloadTooBig if the expanded data of the frame exceed ``max_size`` bytes, or if the message exceeds
        ``max_bytes`` before it is expanded. Raises ProtocolError if the data are not compressed as agreed.
        """
        if frame.opcode < Opcode.CLOSE:
            self._raw_bytes = len(frame.data) + (self._raw_bytes if frame.opcode is Opcode.CONT else 0)
            if self._raw_bytes > self._max_bytes:
                raise PayloadTooBig(self._raw_bytes, self._max_bytes)
        return self._inflater.decode(frame, max_size=max_size)


def accepts_deflate(offers: str) -> bool:
    """Return whether one of the offers in a ``Sec-WebSocket-Extensions`` header can be answered with :data:`ANSWER`.

    An offer with `server_max_window_bits` is declined: an answer must repeat the parameter (RFC 7692 §7.1.2.1).
    An offer with unknown, repeated or invalid parameters is declined too (RFC 7692 §7).
    """
    return any(_is_acceptable(offer) for offer in offers.split(",")[:16])


def _is_acceptable(offer: str) -> bool:
    name, *parameters = (part.strip() for part in offer.split(";"))
    if name != EXTENSION:
        return False
    try:
        answer, _ = _NEGOTIATION.process_request_params(list(_parse(parameters)), [])
    except NegotiationError:
        return False
    return "server_max_window_bits" not in dict(answer)


def _parse(parameters: list[str]) -> Iterator[tuple[str, str | None]]:
    for parameter in parameters:
        key, equals, value = parameter.partition("=")
        yield key.strip(), value.strip().strip('"') if equals else None
