"""Frames of the WebSocket protocol (RFC 6455 §5): their opcodes, close codes, and the encoding of a server's frames."""

from enum import IntEnum

MAX_CONTROL_BYTES = 125
"""Longest payload of a control frame (RFC 6455 §5.5)."""

MAX_REASON_BYTES = MAX_CONTROL_BYTES - 2
"""Longest reason in a close frame, behind its code."""

FIN = 0x80
COMPRESSED = 0x40
"""The first reserved bit (RSV1), which marks a compressed message (RFC 7692 §6)."""


class Opcode(IntEnum):
    """The kinds of frames (RFC 6455 §11.8)."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class CloseCode(IntEnum):
    """The reasons to close a WebSocket (RFC 6455 §7.4.1). The names are those of the registry."""

    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    UNSUPPORTED_DATA = 1003
    INVALID_DATA = 1007
    POLICY_VIOLATION = 1008
    TOO_BIG = 1009
    INTERNAL_ERROR = 1011
    TRY_AGAIN_LATER = 1013


def encode_frame(opcode: Opcode, payload: bytes, bits: int = FIN) -> bytes:
    """Return an unmasked frame. ``bits`` are the bits of the first byte beside the opcode."""
    length = len(payload)
    if length <= MAX_CONTROL_BYTES:
        return b"%c%c%b" % (bits | opcode, length, payload)
    if length < 1 << 16:
        return b"%c\x7e%b%b" % (bits | opcode, length.to_bytes(2), payload)
    return b"%c\x7f%b%b" % (bits | opcode, length.to_bytes(8), payload)


def encode_close(code: int, reason: str = "") -> bytes:
    """Return a close frame. A reason over 123 bytes is cut at a character."""
    cut = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore").encode()
    return encode_frame(Opcode.CLOSE, code.to_bytes(2) + cut)


def is_sendable_code(code: int) -> bool:
    """Return whether a client may send this code in a close frame (RFC 6455 §7.4)."""
    return 1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999
