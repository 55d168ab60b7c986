r"""Encodes messages in Twitter's v1.1 format: one JSON object and ``\r\n``. A heartbeat is ``\r\n`` alone.

Encoded JSON contains no carriage return, so clients can split messages at ``\r\n``. With ``delimited=length`` a line
before each message has the number of its bytes, including its ``\r\n``.
"""

import logging
from functools import cache
from typing import NamedTuple

import msgspec

from stream_server.events.entry import Entry
from stream_server.events.one_line import encode_json
from stream_server.events.position import parse_iso_ms
from stream_server.hub.framing import Framing
from stream_server.hub.messages import ControlMessage
from stream_server.web.dialects.status_text import Json
from stream_server.web.dialects.v1_status import render_delete, render_tweet
from stream_server.web.streaming.framing import wrap_chunk, wrap_raw

logger = logging.getLogger(__name__)

LINE_END = b"\r\n"

MEDIA_TYPE = "application/json"

CODE_STALL, CODE_NORMAL, CODE_REVOKED, CODE_ADMIN_LOGOUT = 4, 5, 6, 7
CODE_BACKFILL_DONE, CODE_EXCEPTION, CODE_SHED_LOAD = 9, 10, 12

DISCONNECT_CODES = {
    "shutdown": 1,
    "too_slow": CODE_STALL,
    "token_expired": CODE_REVOKED,
    "token_revoked": CODE_REVOKED,
    "suspended": CODE_REVOKED,
    "too_many_streams": CODE_ADMIN_LOGOUT,
    "closed_by_user": CODE_NORMAL,
    "backfill_done": CODE_BACKFILL_DONE,
    "resync": CODE_SHED_LOAD,
}
"""Twitter v1.1's disconnect code for each goodbye code. Others become :data:`CODE_EXCEPTION`."""


class V1FramingOptions(NamedTuple):
    """The message format that a client requests. ``delimited`` puts a line with the length before each message."""

    stream: str
    delimited: bool = False
    stall_warnings: bool = False
    chunked: bool = True


@cache
def select_v1_framing(options: V1FramingOptions) -> Framing:
    """Return the framing (how to encode messages) for these options. Clients with equal options share the object."""
    encode = encode_delimited if options.delimited else encode_plain
    return Framing("v1.1", encode, V1ControlEncoder(options), wrap_chunk if options.chunked else wrap_raw)


def encode_plain(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - v1.1 does not send what matched
    """Encode a log entry as one line of v1.1 JSON, or as b"" if Twitter's v1.1 has no message for it."""
    body = _encode_body(entry)
    return body + LINE_END if body else b""


def encode_delimited(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - see encode_plain
    """Encode a log entry like :func:`encode_plain`, after a line with the length of the encoded entry in bytes."""
    return _with_length(_encode_body(entry))


def _with_length(body: bytes) -> bytes:
    return b"%d\r\n%b\r\n" % (len(body) + len(LINE_END), body) if body else b""


def _encode_body(entry: Entry) -> bytes:
    """Return a log entry as v1.1 JSON: empty for kinds other than post and delete, and if the entry lacks a member."""
    if entry.kind not in {"post", "delete"}:
        return b""
    try:
        status = msgspec.json.decode(entry.wire)["status"]
        post = entry.kind == "post"
        return encode_json(render_tweet(status, entry.facts) if post else render_delete(status, entry.position.ms))
    except (LookupError, TypeError, ValueError) as error:
        logger.warning("cannot render log entry %s in v1.1: %r", entry.position.cursor, error)
        return b""


class V1ControlEncoder:
    """Encodes control messages, such as heartbeats and gaps, in Twitter's v1.1 format."""

    def __init__(self, options: V1FramingOptions) -> None:
        self._options = options

    def __call__(self, control: ControlMessage) -> bytes:
        """Encode a control message: `hello` and `heartbeat` as an empty line, problems as JSON, all others as b""."""
        if control.kind in {"hello", "heartbeat"}:
            return LINE_END
        body = self._render(control.kind, msgspec.json.decode(control.data))
        if body is None:
            return b""
        encoded = encode_json(body)
        return _with_length(encoded) if self._options.delimited else encoded + LINE_END

    def _render(self, kind: str, message: Json) -> Json | None:
        if kind == "goodbye":
            code = DISCONNECT_CODES.get(message["code"], CODE_EXCEPTION)
            return {"disconnect": {"code": code, "stream_name": self._options.stream, "reason": message["reason"]}}
        if kind == "gap":  # Twitter sends a running total; here clients share the bytes, so it is this gap's
            return {"limit": {"track": message["count"] or 0, "timestamp_ms": str(parse_iso_ms(message["at"]))}}
        if kind == "warning" and self._options.stall_warnings:
            return _render_warning(message)
        return None


def _render_warning(notice: Json) -> Json:
    """Return Twitter's ``warning`` message: the code in capitals, and how full the send buffer is, if known."""
    code = str(notice["code"]).upper()
    warning: Json = {"code": code, "message": notice.get("message") or code.replace("_", " ").capitalize()}
    if "percent" in notice:
        warning["percent_full"] = notice["percent"]
    return {"warning": warning}
