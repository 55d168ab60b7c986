"""Encodes the frames of a server (RFC 6455 §5), which have no mask."""

from websockets.frames import Opcode

MAX_CONTROL_BYTES = 125
"""Longest payload of a control frame (RFC 6455 §5.5)."""

MAX_REASON_BYTES = MAX_CONTROL_BYTES - 2
"""Longest reason in a close frame, behind its code."""

FIN = 0x80
COMPRESSED = 0x40
"""The first reserved bit (RSV1), which marks a compressed message (RFC 7692 §6)."""


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
