r"""Encodes messages in v1.1 format: one JSON object and ``\r\n``. A heartbeat is ``\r\n`` alone.

Encoded JSON contains no carriage return, so clients can split at it. With ``delimited=length`` a line before each
message has the number of its bytes, including its ``\r\n``.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import msgspec

from stream_server.events.entry import Entry
from stream_server.hub.framing import Framing
from stream_server.hub.messages import ControlMessage
from stream_server.web.dialects.status_text import Json
from stream_server.web.dialects.v1_status import render_delete, render_tweet
from stream_server.web.dialects.v1_user import parse_iso_ms
from stream_server.web.streaming.framing import wrap_chunk, wrap_raw

logger = logging.getLogger(__name__)

LINE_END = b"\r\n"

MEDIA_TYPE = "application/json"

CODE_STALL, CODE_REVOKED, CODE_BACKFILL_DONE, CODE_EXCEPTION, CODE_SHED_LOAD = 4, 6, 9, 10, 12

DISCONNECT_CODES = {
    "shutdown": 1,
    "too_slow": CODE_STALL,
    "token_expired": CODE_REVOKED,
    "token_revoked": CODE_REVOKED,
    "suspended": CODE_REVOKED,
    "backfill_done": CODE_BACKFILL_DONE,
    "resync": CODE_SHED_LOAD,
}
"""v1.1's disconnect code for each goodbye code. Others become :data:`CODE_EXCEPTION`."""

_encode = msgspec.json.encode


class V1FramingOptions(NamedTuple):
    """The framing that a client requests.

    Attributes:
        stream: Name of the stream, sent in its last message.
        delimited: Whether a line with the length precedes each message.
        stall_warnings: Whether the client gets warnings when it falls behind.
        chunked: Whether the connection uses chunked transfer coding.
    """

    stream: str
    delimited: bool = False
    stall_warnings: bool = False
    chunked: bool = True


@cache
def select_v1_framing(options: V1FramingOptions) -> Framing:
    """Return the framing for these options. Clients with equal options share it; there are two dozen in all."""
    encode = encode_delimited if options.delimited else encode_plain
    return Framing("v1.1", encode, V1ControlEncoder(options), wrap_chunk if options.chunked else wrap_raw)


def encode_plain(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - v1.1 does not send what matched
    """Return an entry as one line, or b"" if v1.1 has no message for it."""
    body = _encode_body(entry)
    return body + LINE_END if body else b""


def encode_delimited(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - see encode_plain
    """Return an entry as one line behind its length, or b"" if v1.1 has no message for it."""
    return _with_length(_encode_body(entry))


def _with_length(body: bytes) -> bytes:
    """Return the length line and the line of a message; an empty body stays empty."""
    return b"%d\r\n%b\r\n" % (len(body) + len(LINE_END), body) if body else b""


def _encode_body(entry: Entry) -> bytes:
    """Return an entry as JSON, or b"" if v1.1 has no message for its kind.

    An entry with an incomplete status is logged and also gives b"".
    """
    render = _RENDERERS.get(entry.kind)
    if render is None:
        return b""
    try:
        return _encode(render(msgspec.json.decode(entry.wire)["status"], entry))
    except (LookupError, TypeError, ValueError) as error:
        logger.warning("cannot render log entry %s in v1.1: %r", entry.position.cursor, error)
        return b""


_RENDERERS: dict[str, Callable[[Json, Entry], Json]] = {
    "post": lambda status, entry: render_tweet(status, entry.facts),
    "delete": lambda status, entry: render_delete(status, entry.position.ms),
}
"""The kinds of entries that public v1.1 streams send, and the function that renders each."""


class V1ControlEncoder:
    """Encodes control messages for one set of framing options."""

    def __init__(self, options: V1FramingOptions) -> None:
        self._options = options

    def __call__(self, control: ControlMessage) -> bytes:
        """Return a blank line for a heartbeat, a message for a problem, b"" for a message that v1.1 does not have."""
        if control.kind in {"hello", "heartbeat"}:
            return LINE_END
        body = self._render(control.kind, msgspec.json.decode(control.data))
        if body is None:
            return b""
        encoded = _encode(body)
        return _with_length(encoded) if self._options.delimited else encoded + LINE_END

    def _render(self, kind: str, message: Json) -> Json | None:
        """Return the v1.1 message for a control message, or None if there is none."""
        if kind == "goodbye":
            return _render_disconnect(message, self._options.stream)
        if kind == "gap":
            return _render_limit(message)
        if kind == "warning" and self._options.stall_warnings:
            return _render_warning(message)
        return None


def _render_disconnect(goodbye: Json, stream: str) -> Json:
    """Return v1.1's ``disconnect`` message for a goodbye."""
    code = DISCONNECT_CODES.get(goodbye["code"], CODE_EXCEPTION)
    return {"disconnect": {"code": code, "stream_name": stream, "reason": goodbye["reason"]}}


def _render_limit(gap: Json) -> Json:
    """Return v1.1's ``limit`` message for a gap: the number of events lost, or 0 if it is unknown.

    v1.1 sends a running total. Here the number counts this gap only, because all clients share the bytes.
    """
    return {"limit": {"track": gap["count"] or 0, "timestamp_ms": str(parse_iso_ms(gap["at"]))}}


def _render_warning(notice: Json) -> Json:
    """Return v1.1's ``warning`` message: the code in capitals, and ``percent_full`` if the notice has a percentage."""
    code = str(notice["code"]).upper()
    warning: Json = {"code": code, "message": notice.get("message") or code.replace("_", " ").capitalize()}
    if "percent" in notice:
        warning["percent_full"] = notice["percent"]
    return {"warning": warning}
