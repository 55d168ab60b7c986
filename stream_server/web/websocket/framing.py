"""Encodes messages for WebSockets: each message is one text frame, whose bytes all clients of a framing share."""

from functools import cache

from websockets.frames import Opcode

from stream_server.events.entry import Entry
from stream_server.hub.messages import ControlMessage, Framing
from stream_server.web.streaming.framing import wrap_raw
from stream_server.web.websocket.deflate import MIN_COMPRESSED_BYTES, MessageCompressor
from stream_server.web.websocket.frames import COMPRESSED, FIN, encode_frame

WEBSOCKET = "websocket"
"""Name of the framings of WebSockets."""


def encode_text(data: bytes) -> bytes:
    """Return a text frame with ``data``, which must be UTF-8."""
    return encode_frame(Opcode.TEXT, data)


def encode_entry(entry: Entry, matched: bytes | None) -> bytes:
    """Encode an entry as a text frame. ``matched`` is the JSON of the matched filters, or None."""
    return encode_text(entry.message_json(matched))


def encode_control(control: ControlMessage) -> bytes:
    """Encode a control message as a text frame."""
    return encode_text(control.data)


def encode_compressed_entry(entry: Entry, matched: bytes | None) -> bytes:
    """Encode an entry as a compressed text frame. ``matched`` is as in `encode_entry`."""
    return _encode_compressed(entry.message_json(matched))


def encode_compressed_control(control: ControlMessage) -> bytes:
    """Encode a control message as a text frame, compressed if it is long."""
    return _encode_compressed(control.data)


def _encode_compressed(data: bytes) -> bytes:
    if len(data) < MIN_COMPRESSED_BYTES:
        return encode_text(data)
    return encode_frame(Opcode.TEXT, _compressor().compress(data), FIN | COMPRESSED)


@cache
def _compressor() -> MessageCompressor:
    """Return the compressor of this process. Only the event loop uses it."""
    return MessageCompressor()


def select_framing(*, compresses: bool) -> Framing:
    """Return the framing of a WebSocket, with compression if it was agreed on."""
    return _COMPRESSED_FRAMING if compresses else _PLAIN_FRAMING


_PLAIN_FRAMING = Framing(WEBSOCKET, encode_entry, encode_control, wrap_raw)
_COMPRESSED_FRAMING = Framing(WEBSOCKET, encode_compressed_entry, encode_compressed_control, wrap_raw)
