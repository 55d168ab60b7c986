"""Frames as a client sends them: masked. Written apart from the server's parser, so that one mistake is not in both."""

import struct
import zlib
from itertools import cycle

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN, RSV1, RSV2, RSV3 = 0x80, 0x40, 0x20, 0x10
MASK = b"\xa1\x02\xfe\x37"


def frame(opcode: int, payload: bytes = b"", bits: int = FIN, mask: bytes | None = MASK, size: int = 0) -> bytes:
    """Return one frame. ``mask`` None sends it unmasked. ``size`` forces 2 or 8 bytes for the length."""
    length = len(payload)
    size = size or (8 if length > 65_535 else 2 if length > 125 else 0)
    short = {0: length, 2: 126, 8: 127}[size] | (0 if mask is None else 0x80)
    extended = {0: b"", 2: struct.pack("!H", length & 0xFFFF), 8: struct.pack("!Q", length)}[size]
    body = payload if mask is None else bytes(byte ^ key for byte, key in zip(payload, cycle(mask), strict=False))
    return bytes((bits | opcode, short)) + extended + (mask or b"") + body


def close(code: int | None = None, reason: bytes = b"") -> bytes:
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason)


def deflated(data: bytes, *, window_bits: int = 15, final: bool = False) -> bytes:
    """Return the payload of a compressed message. ``final`` ends it with a final block."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -window_bits)
    body = compressor.compress(data)
    if final:
        return body + compressor.flush() + b"\x00"
    return (body + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]
