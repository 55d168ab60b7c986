"""How messages become bytes: server-sent events or one JSON object a line, chunked or raw.

Everything here is pure and shared: two clients with the same framing get the same bytes object.
"""

from stream_server.errors import NotAcceptable
from stream_server.events.entry import Entry
from stream_server.hub.framing import Framing
from stream_server.hub.messages import ControlMessage

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"


def encode_sse(entry: Entry, matched: bytes | None) -> bytes:
    """An entry as an event of the WHATWG EventSource format."""
    return _sse_event(entry.position.cursor, entry.kind, entry.message_json(matched))


def encode_sse_control(control: ControlMessage) -> bytes:
    """A control message is an event too; ``retry:`` tells EventSource when to come back."""
    retry = b"" if control.retry_ms is None else b"retry: %d\n" % control.retry_ms
    return retry + _sse_event(control.cursor, control.kind, control.data)


def _sse_event(cursor: str, kind: str, data: bytes) -> bytes:
    """``data`` is JSON on one line, so no field can be injected."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), kind.encode(), data)


def encode_ndjson(entry: Entry, matched: bytes | None) -> bytes:
    """One JSON object and a line feed."""
    return entry.message_json(matched) + b"\n"


def encode_ndjson_control(control: ControlMessage) -> bytes:
    """A control message is a line like any other."""
    return control.data + b"\n"


def wrap_chunk(data: bytes) -> bytes:
    """One chunk of HTTP/1.1 chunked transfer coding (RFC 9112 §7.1); ``data`` is not empty, that would be the last."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def wrap_raw(data: bytes) -> bytes:
    """HTTP/1.0 knows no chunks: the body ends with the connection."""
    return data


def select_framing(media_type: str, *, chunked: bool) -> Framing:
    """The one shared framing for a media type and a version of HTTP."""
    return _FRAMINGS[media_type, chunked]


_FRAMINGS = {
    (SSE, True): Framing(SSE, encode_sse, encode_sse_control, wrap_chunk),
    (SSE, False): Framing(SSE, encode_sse, encode_sse_control, wrap_raw),
    (NDJSON, True): Framing(NDJSON, encode_ndjson, encode_ndjson_control, wrap_chunk),
    (NDJSON, False): Framing(NDJSON, encode_ndjson, encode_ndjson_control, wrap_raw),
}

_MEDIA_TYPE_BY_RANGE = {SSE: SSE, "text/*": SSE, NDJSON: NDJSON, "application/*": NDJSON, "*/*": NDJSON}


def negotiate_media_type(accept: str) -> str:
    """The media type for an ``Accept`` header (RFC 9110 §12.5.1): the highest quality, then the first named."""
    best, best_quality = "", 0.0
    for part in accept.split(","):
        name, _, parameters = part.partition(";")
        offered = _MEDIA_TYPE_BY_RANGE.get(name.strip().lower())
        quality = _quality(parameters)
        if offered is not None and quality > best_quality:
            best, best_quality = offered, quality
    if not best:
        message = f"this answers with {SSE} or {NDJSON}"
        raise NotAcceptable(message, param="Accept")
    return best


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
