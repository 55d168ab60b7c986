"""Encodes messages for the wire: Server-Sent Events or one JSON object a line, in HTTP chunks or raw."""

from collections.abc import Mapping

from stream_server.errors import NotAcceptable
from stream_server.events.entry import Entry
from stream_server.hub.client_registry import POLL
from stream_server.hub.messages import ControlMessage, Framing
from stream_server.web.http.qualities import parse_qualities

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"

_PROTOCOL_BY_FRAMING = {SSE: "sse", NDJSON: "ndjson", "websocket": "websocket", "v1.1": "v1", "v2": "v2", POLL: "poll"}
"""The protocols of streams by the names of their framings, for the counts that an operator sees."""


def protocol_of(framing: str) -> str:
    """Return the protocol of the framing with this name, such as ``ndjson``."""
    return _PROTOCOL_BY_FRAMING.get(framing, framing)


def count_streams(open_by_framing: Mapping[str, int]) -> dict[str, int]:
    """Return the number of open streams of each protocol, 0 for a protocol without a stream."""
    counts = dict.fromkeys(_PROTOCOL_BY_FRAMING.values(), 0)
    for framing, count in open_by_framing.items():
        counts[_PROTOCOL_BY_FRAMING[framing]] += count
    return counts


def encode_sse(entry: Entry, matched: bytes | None) -> bytes:
    """Encode an entry as a Server-Sent Event (WHATWG HTML). ``matched`` is the JSON of the matched filters, or None."""
    return _sse_event(entry.position.cursor, entry.kind, entry.message_json(matched))


def encode_sse_control(control: ControlMessage) -> bytes:
    """Encode a control message as a Server-Sent Event. Its ``retry:`` field sets the reconnect delay in ms."""
    retry = b"" if control.retry_ms is None else b"retry: %d\n" % control.retry_ms
    return retry + _sse_event(control.cursor, control.kind, control.data)


def _sse_event(cursor: str, kind: str, data: bytes) -> bytes:
    """Return one Server-Sent Event. ``data`` must be JSON on a single line, so that it cannot inject other fields."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), kind.encode(), data)


def encode_ndjson(entry: Entry, matched: bytes | None) -> bytes:
    """Encode a log entry as one JSON object and a line feed."""
    return entry.message_json(matched) + b"\n"


def encode_ndjson_control(control: ControlMessage) -> bytes:
    """Encode a control message as one JSON object and a line feed."""
    return control.data + b"\n"


TEXT_ENCODERS = (encode_sse_control, encode_ndjson_control)
"""The encoders that leave the text of a message as it is, and do not depend on its length."""


def wrap_chunk(data: bytes) -> bytes:
    """Return ``data`` as an HTTP/1.1 chunk (RFC 9112 §7.1). Never pass empty ``data``: an empty chunk ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def wrap_raw(data: bytes) -> bytes:
    """Return ``data`` unchanged, for HTTP/1.0, which has no chunks."""
    return data


def select_framing(media_type: str, *, chunked: bool) -> Framing:
    """Return the framing (how to encode messages) for a media type, with HTTP chunks or without."""
    return _FRAMINGS[media_type, chunked]


_FRAMINGS = {
    (SSE, True): Framing(SSE, encode_sse, encode_sse_control, wrap_chunk),
    (SSE, False): Framing(SSE, encode_sse, encode_sse_control, wrap_raw),
    (NDJSON, True): Framing(NDJSON, encode_ndjson, encode_ndjson_control, wrap_chunk),
    (NDJSON, False): Framing(NDJSON, encode_ndjson, encode_ndjson_control, wrap_raw),
}


def negotiate_media_type(accept: str) -> str:
    """Return the media type to send for an ``Accept`` header (RFC 9110 §12.5.1). Raises NotAcceptable if none fits."""
    by_range = {SSE: SSE, "text/*": SSE, NDJSON: NDJSON, "application/*": NDJSON, "*/*": NDJSON}
    best, best_quality = "", 0.0
    for media_range, quality in parse_qualities(accept).items():
        offered = by_range.get(media_range)
        if offered is not None and quality > best_quality:
            best, best_quality = offered, quality
    if not best:
        raise NotAcceptable(f"available media types: {SSE}, {NDJSON}", param="Accept")
    return best
