"""Parses what a client sends on a WebSocket (RFC 6455 §5). Strict, incremental, and without I/O.

Each fault is found as early as its bytes allow: a wrong header before the payload has come, and invalid UTF-8 with the
first byte that cannot be right. The memory is bounded by the largest message and one read of the socket.
"""

import codecs
from typing import NamedTuple

from stream_server.web.websocket.deflate import FrameFault, MessageInflater
from stream_server.web.websocket.frames import (
    COMPRESSED,
    FIN,
    MAX_CONTROL_BYTES,
    CloseCode,
    Opcode,
    is_sendable_code,
)

MAX_MESSAGE_BYTES = 65_536
"""Largest message of a client in bytes, also after it was expanded."""

MASKED = 0x80
RESERVED_BITS = 0x70
MASK_BYTES = 4

_OPCODES = frozenset(Opcode)
_new_utf8_decoder = codecs.getincrementaldecoder("utf-8")


class Received(NamedTuple):
    """A message or a control frame of the client.

    A part of a message that is not yet complete has the opcode `CONTINUATION` and no payload. Of a `CLOSE`, ``code`` is
    the client's code (None without one), and the payload is its reason.
    """

    opcode: Opcode
    payload: bytes
    code: int | None = None


FRAGMENT = Received(Opcode.CONTINUATION, b"")
"""A part of a message came, and the message is not yet complete."""


class _Header(NamedTuple):
    opcode: Opcode
    is_final: bool
    is_compressed: bool
    length: int
    mask: bytes


class _Message:
    """A message that is being received: its payload so far, and what its next bytes need."""

    def __init__(self, opcode: Opcode, inflater: MessageInflater | None) -> None:
        self.opcode = opcode
        self.payload = bytearray()
        self._inflater = inflater
        self._utf8 = _new_utf8_decoder() if opcode is Opcode.TEXT else None

    @property
    def is_compressed(self) -> bool:
        return self._inflater is not None

    def add(self, data: bytes, max_bytes: int, *, is_last: bool) -> None:
        """Add bytes of the payload, without their mask. Raises FrameFault."""
        room = max_bytes - len(self.payload)
        if self._inflater is not None:
            data = self._inflater.inflate(data, room) if data else b""
            data += self._inflater.end(room - len(data)) if is_last else b""
        if self._utf8 is not None:
            _decode(self._utf8, data, is_last=is_last)
        self.payload += data


def _decode(decoder: codecs.IncrementalDecoder, data: bytes, *, is_last: bool) -> None:
    try:
        decoder.decode(data, is_last)
    except UnicodeDecodeError:
        raise FrameFault(CloseCode.INVALID_DATA, "the text is not UTF-8") from None


class FrameReader:
    """Parses the bytes that one client sends. After a fault or a close frame, do not use it any more."""

    def __init__(self, *, compresses: bool, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        """``compresses`` is whether compression was agreed on in the handshake."""
        self._compresses = compresses
        self._max_bytes = max_message_bytes
        self._buffer = bytearray()
        self._header: _Header | None = None
        self._missing = 0
        self._offset = 0
        self._message: _Message | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no frame and no message has begun, so the reader holds nothing."""
        return not self._buffer and self._header is None and self._message is None

    def feed(self, data: bytes) -> None:
        """Take bytes as they came from the socket."""
        self._buffer += data

    def read(self) -> Received | None:
        """Return the next message, control frame or `FRAGMENT`; None if more bytes are needed. Raises FrameFault."""
        header = self._header
        if header is None:
            header = self._header = self._read_header()
            if header is None:
                return None
            self._missing, self._offset = header.length, 0
            self._begin(header)
        return self._read_control(header) if header.opcode >= Opcode.CLOSE else self._read_data(header)

    def _read_header(self) -> _Header | None:
        """Return the header of the frame at the begin of the buffer, checked; None if more bytes are needed.

        Raises FrameFault.
        """
        buffer = self._buffer
        if buffer:
            _check_first_byte(buffer[0])
        if len(buffer) < 2:
            return None
        first, second = buffer[0], buffer[1]
        if not second & MASKED:
            raise FrameFault(CloseCode.PROTOCOL_ERROR, "a client must mask its frames")
        short = second & 0x7F
        extended = {126: 2, 127: 8}.get(short, 0)
        if first & 0x08 and (extended or not first & FIN):
            raise FrameFault(CloseCode.PROTOCOL_ERROR, "a control frame is one frame of at most 125 bytes")
        size = 2 + extended + MASK_BYTES
        if len(buffer) < size:
            return None
        length = int.from_bytes(buffer[2 : 2 + extended]) if extended else short
        if length >= 1 << 63 or (extended == 2 and length <= MAX_CONTROL_BYTES) or (extended == 8 and length < 1 << 16):
            raise FrameFault(CloseCode.PROTOCOL_ERROR, "the length of a frame is encoded wrongly")
        mask = bytes(buffer[size - MASK_BYTES : size])
        del buffer[:size]
        return _Header(Opcode(first & 0x0F), bool(first & FIN), bool(first & COMPRESSED), length, mask)

    def _begin(self, header: _Header) -> None:
        """Check that a frame may come here, and begin the message if it is the first of one."""
        if header.is_compressed and (not self._compresses or header.opcode not in (Opcode.TEXT, Opcode.BINARY)):
            raise FrameFault(CloseCode.PROTOCOL_ERROR, "a reserved bit is set")
        if header.opcode >= Opcode.CLOSE:
            return
        if (header.opcode is Opcode.CONTINUATION) is (self._message is None):
            raise FrameFault(CloseCode.PROTOCOL_ERROR, "a message must be continued until it ends")
        if self._message is None:
            self._message = _Message(header.opcode, MessageInflater() if header.is_compressed else None)
        if header.length > self._max_bytes - len(self._message.payload):
            raise FrameFault(CloseCode.TOO_BIG, f"a message may have at most {self._max_bytes} bytes")

    def _take(self, count: int) -> bytes:
        """Remove ``count`` bytes of payload from the buffer, and return them without their mask."""
        assert self._header is not None
        masked = bytes(self._buffer[:count])
        del self._buffer[:count]
        data = unmask(masked, self._header.mask, self._offset)
        self._offset += count
        self._missing -= count
        return data

    def _read_control(self, header: _Header) -> Received | None:
        if len(self._buffer) < header.length:
            return None
        payload = self._take(header.length)
        self._header = None
        return _parse_close(payload) if header.opcode is Opcode.CLOSE else Received(header.opcode, payload)

    def _read_data(self, header: _Header) -> Received | None:
        assert self._message is not None
        data = self._take(min(self._missing, len(self._buffer)))
        is_whole = not self._missing
        self._message.add(data, self._max_bytes, is_last=is_whole and header.is_final)
        if not is_whole:
            return None
        self._header = None
        if not header.is_final:
            return FRAGMENT
        message, self._message = self._message, None
        return Received(message.opcode, bytes(message.payload))


def unmask(masked: bytes, mask: bytes, offset: int = 0) -> bytes:
    """Return ``masked`` without its mask (RFC 6455 §5.3). ``offset`` is the place of its first byte in the payload."""
    length = len(masked)
    turned = mask[offset % MASK_BYTES :] + mask[: offset % MASK_BYTES]
    whole = (turned * (length // MASK_BYTES + 1))[:length]
    return (int.from_bytes(masked) ^ int.from_bytes(whole)).to_bytes(length)


def _check_first_byte(first: int) -> None:
    if first & RESERVED_BITS & ~COMPRESSED:
        raise FrameFault(CloseCode.PROTOCOL_ERROR, "a reserved bit is set")
    if first & 0x0F not in _OPCODES:
        raise FrameFault(CloseCode.PROTOCOL_ERROR, "the opcode is unknown")


def _parse_close(payload: bytes) -> Received:
    if not payload:
        return Received(Opcode.CLOSE, b"")
    code, reason = int.from_bytes(payload[:2]), payload[2:]
    if not is_sendable_code(code):  # nor is half a code
        raise FrameFault(CloseCode.PROTOCOL_ERROR, "the code of the close frame is invalid")
    _decode(_new_utf8_decoder(), reason, is_last=True)
    return Received(Opcode.CLOSE, reason, code)
