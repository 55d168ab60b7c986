"""Reads the messages of a stream, see ``wire.messages``."""

from collections.abc import Callable

import msgspec

from stream_server.client.errors import Malformed, summary_of
from stream_server.wire.messages import EVENT_TYPES, Control, Event


class _Head(msgspec.Struct):
    kind: str


_decode_head = msgspec.json.Decoder(_Head).decode
_DECODERS: dict[str, Callable[[bytes], Event]] = {
    kind: msgspec.json.Decoder(each).decode for kind, each in EVENT_TYPES.items()
}
_decode_unknown: Callable[[bytes], Event] = msgspec.json.Decoder(Event).decode


def parse_event(raw: bytes) -> Event:
    """Parse one JSON object into an event. Raises :class:`Malformed` if it is not a message of this server."""
    try:
        event = _decode(raw, _decode_head(raw).kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not a message of a stream-server ({error}): {summary_of(raw)}") from error
    msgspec.structs.force_setattr(event, "raw", raw)
    return event


def _decode(raw: bytes, kind: str) -> Event:
    try:
        return _DECODERS.get(kind, _decode_unknown)(raw)
    except msgspec.ValidationError:  # repeated from the same cursor, it would end the stream again and again
        if issubclass(EVENT_TYPES.get(kind, Event), Control):
            raise
        return _decode_unknown(raw)
