r"""How messages of v1.1 become bytes: one JSON object and ``\r\n``; ``\r\n`` alone says that the stream lives.

JSON holds no carriage return, so that clients can split at it. With ``delimited=length`` a line before each message
says how many bytes it has, its ``\r\n`` counted.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import msgspec

from stream_server.events import Entry
from stream_server.hub.control import Control
from stream_server.hub.group import Framing
from stream_server.web.dialects.v1_status import gone, tweet
from stream_server.web.dialects.v1_user import ms_of
from stream_server.web.dialects.words import Json
from stream_server.web.framing import chunk, raw

logger = logging.getLogger(__name__)

END = b"\r\n"

MEDIA_TYPE = "application/json"

STALL, REVOKED, FULL, EXCEPTION, SHED = 4, 6, 9, 10, 12

DISCONNECTS = {
    "shutdown": 1,
    "too_slow": STALL,
    "token_expired": REVOKED,
    "token_revoked": REVOKED,
    "suspended": REVOKED,
    "backfill_done": FULL,
    "resync": SHED,
}
"""The numbers of our reasons to end a stream; what has none is an exception."""

_encode = msgspec.json.encode


class Manner(NamedTuple):
    """What a client wants of its framing; ``stream`` is the name of the stream, told at its end."""

    stream: str
    delimited: bool = False
    stall_warnings: bool = False
    chunked: bool = True


@cache
def framing(manner: Manner) -> Framing:
    """The one shared framing for a manner: there are two dozen of them."""
    encode = delimited if manner.delimited else plain
    return Framing("v1.1", encode, Controls(manner), chunk if manner.chunked else raw)


def plain(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - v1.1 does not say what matched
    """A message and its end."""
    body = _body(entry)
    return body + END if body else b""


def delimited(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - see plain
    """The same behind its length."""
    return _counted(_body(entry))


def _counted(body: bytes) -> bytes:
    return b"%d\r\n%b\r\n" % (len(body) + len(END), body) if body else b""


def _body(entry: Entry) -> bytes:
    """An entry as JSON, nothing where v1.1 has no word for it; one that holds no whole status is none of ours."""
    tell = _TELLS.get(entry.kind)
    if tell is None:
        return b""
    try:
        return _encode(tell(msgspec.json.decode(entry.wire)["status"], entry))
    except (LookupError, TypeError, ValueError) as error:
        logger.warning("%s on the log cannot be told in v1.1: %r", entry.position.cursor, error)
        return b""


_TELLS: dict[str, Callable[[Json, Entry], Json]] = {
    "post": lambda status, entry: tweet(status, entry.facts),
    "delete": lambda status, entry: gone(status, entry.position.ms),
}
"""The kinds that streams for everybody told, and how."""


class Controls:
    """Control messages in one manner."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner

    def __call__(self, control: Control) -> bytes:
        """A blank line for a sign of life, a message for what went wrong, nothing for what v1.1 does not know."""
        if control.kind in {"hello", "heartbeat"}:
            return END
        body = self._body(control.kind, msgspec.json.decode(control.data))
        if body is None:
            return b""
        made = _encode(body)
        return _counted(made) if self._manner.delimited else made + END

    def _body(self, kind: str, told: Json) -> Json | None:
        if kind == "goodbye":
            return _disconnect(told, self._manner.stream)
        if kind == "gap":
            return _limit(told)
        if kind == "warning" and self._manner.stall_warnings:
            return _warning(told)
        return None


def _disconnect(told: Json, stream: str) -> Json:
    code = DISCONNECTS.get(told["code"], EXCEPTION)
    return {"disconnect": {"code": code, "stream_name": stream, "reason": told["reason"]}}


def _limit(told: Json) -> Json:
    """How many were lost in this gap, 0 where nobody knows. All get the same bytes, so nobody's gaps are summed."""
    return {"limit": {"track": told["count"] or 0, "timestamp_ms": str(ms_of(told["at"]))}}


def _warning(told: Json) -> Json:
    """In capitals, and with ``percent_full`` where something fills."""
    code = str(told["code"]).upper()
    warning: Json = {"code": code, "message": told.get("message") or code.replace("_", " ").capitalize()}
    if "percent" in told:
        warning["percent_full"] = told["percent"]
    return {"warning": warning}
