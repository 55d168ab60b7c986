r"""How messages of v1.1 become bytes: one JSON object and ``\r\n``; ``\r\n`` alone says that the stream lives.

JSON holds no carriage return, so that clients can split at it. With ``delimited=length`` a line before each message
says how many bytes it has, its ``\r\n`` counted.
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
"""The numbers of our reasons to end a stream; what has none is an exception."""

_encode = msgspec.json.encode


class V1FramingOptions(NamedTuple):
    """What a client wants of its framing; ``stream`` is the name of the stream, told at its end."""

    stream: str
    delimited: bool = False
    stall_warnings: bool = False
    chunked: bool = True


@cache
def select_v1_framing(options: V1FramingOptions) -> Framing:
    """The one shared framing for a manner: there are two dozen of them."""
    encode = encode_delimited if options.delimited else encode_plain
    return Framing("v1.1", encode, V1ControlEncoder(options), wrap_chunk if options.chunked else wrap_raw)


def encode_plain(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - v1.1 does not say what matched
    """A message and its end."""
    body = _encode_body(entry)
    return body + LINE_END if body else b""


def encode_delimited(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - see plain
    """The same behind its length."""
    return _with_length(_encode_body(entry))


def _with_length(body: bytes) -> bytes:
    return b"%d\r\n%b\r\n" % (len(body) + len(LINE_END), body) if body else b""


def _encode_body(entry: Entry) -> bytes:
    """An entry as JSON, nothing where v1.1 has no word for it; one that holds no whole status is none of ours."""
    tell = _RENDERERS.get(entry.kind)
    if tell is None:
        return b""
    try:
        return _encode(tell(msgspec.json.decode(entry.wire)["status"], entry))
    except (LookupError, TypeError, ValueError) as error:
        logger.warning("%s on the log cannot be told in v1.1: %r", entry.position.cursor, error)
        return b""


_RENDERERS: dict[str, Callable[[Json, Entry], Json]] = {
    "post": lambda status, entry: render_tweet(status, entry.facts),
    "delete": lambda status, entry: render_delete(status, entry.position.ms),
}
"""The kinds that streams for everybody told, and how."""


class V1ControlEncoder:
    """Control messages in one manner."""

    def __init__(self, options: V1FramingOptions) -> None:
        self._options = options

    def __call__(self, control: ControlMessage) -> bytes:
        """A blank line for a sign of life, a message for what went wrong, nothing for what v1.1 does not know."""
        if control.kind in {"hello", "heartbeat"}:
            return LINE_END
        body = self._render(control.kind, msgspec.json.decode(control.data))
        if body is None:
            return b""
        made = _encode(body)
        return _with_length(made) if self._options.delimited else made + LINE_END

    def _render(self, kind: str, message: Json) -> Json | None:
        if kind == "goodbye":
            return _render_disconnect(message, self._options.stream)
        if kind == "gap":
            return _render_limit(message)
        if kind == "warning" and self._options.stall_warnings:
            return _render_warning(message)
        return None


def _render_disconnect(goodbye: Json, stream: str) -> Json:
    code = DISCONNECT_CODES.get(goodbye["code"], CODE_EXCEPTION)
    return {"disconnect": {"code": code, "stream_name": stream, "reason": goodbye["reason"]}}


def _render_limit(gap: Json) -> Json:
    """How many were lost in this gap, 0 where nobody knows. All get the same bytes, so nobody's gaps are summed."""
    return {"limit": {"track": gap["count"] or 0, "timestamp_ms": str(parse_iso_ms(gap["at"]))}}


def _render_warning(notice: Json) -> Json:
    """In capitals, and with ``percent_full`` where something fills."""
    code = str(notice["code"]).upper()
    warning: Json = {"code": code, "message": notice.get("message") or code.replace("_", " ").capitalize()}
    if "percent" in notice:
        warning["percent_full"] = notice["percent"]
    return {"warning": warning}
