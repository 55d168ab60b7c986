"""Encodes messages in v2 format: one JSON object and a line end. A heartbeat is a line end alone.

Clients that want the same members share one framing and its bytes. The streams send Tweets but no deletes, as in X: a
client learns elsewhere that a Tweet was deleted.
"""

import logging
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from stream_server.events.entry import Entry
from stream_server.hub.framing import Framing
from stream_server.hub.messages import ControlMessage
from stream_server.web.dialects.status_text import Json
from stream_server.web.dialects.v2_fields import FieldSelection
from stream_server.web.dialects.v2_problem import PROBLEM_TYPE_PREFIX
from stream_server.web.dialects.v2_status import KnownUsers, render_includes, render_tweet
from stream_server.web.streaming.framing import wrap_chunk, wrap_raw

logger = logging.getLogger(__name__)

LINE_END = b"\r\n"

MAX_CACHED_FRAMINGS = 256
"""Framings that are kept for sharing. Clients beyond these get a framing of their own."""

MEDIA_TYPE = "application/json"

DISCONNECT_TYPES = {
    "shutdown": "OperationalDisconnect",
    "too_slow": "SlowReader",
    "token_expired": "ForceDisconnect",
    "token_revoked": "ForceDisconnect",
    "suspended": "ForceDisconnect",
    "resync": "UpstreamOperationalDisconnect",
}
"""X's disconnect type for each goodbye code."""

_encode = msgspec.json.encode


@lru_cache(MAX_CACHED_FRAMINGS)
def select_v2_framing(fields: FieldSelection, *, chunked: bool) -> Framing:
    """Return the framing for these members; clients with equal selections and the same HTTP version share it."""
    return Framing("v2", TweetEncoder(fields), encode_control, wrap_chunk if chunked else wrap_raw)


@dataclass(frozen=True, slots=True)
class TweetEncoder:
    """Encodes a post: the Tweet as ``data``, the expansions as ``includes``, the matching rules as ``matching_rules``.

    Everything except the rules is encoded once for all clients that want the same members.
    """

    fields: FieldSelection

    def __call__(self, entry: Entry, matched: bytes | None) -> bytes:
        """Return a post as one line, b"" for other kinds; ``matched`` is the JSON list of the matching rules."""
        if entry.kind != "post":
            return b""
        if matched is None:
            return self._encode_shared(entry)
        shared = entry.frame(self)
        return shared and shared[: -len(b"}" + LINE_END)] + b',"matching_rules":' + matched + b"}" + LINE_END

    def _encode_shared(self, entry: Entry) -> bytes:
        """Return a post without rules. An entry with an incomplete status is logged and gives b""."""
        try:
            return _encode(self._render(entry)) + LINE_END
        except (LookupError, TypeError, ValueError) as error:
            logger.warning("cannot render log entry %s in v2: %r", entry.position.cursor, error)
            return b""

    def _render(self, entry: Entry) -> Json:
        """Return the members ``data`` and, unless empty, ``includes``."""
        status, facts = msgspec.json.decode(entry.wire)["status"], entry.facts
        known_users = KnownUsers(facts.author, facts.original_author, facts.reply_to_login)
        data = {"data": render_tweet(status, self.fields.tweet)}
        includes = render_includes(status, known_users, self.fields) if self.fields.expansions else {}
        return {**data, "includes": includes} if includes else data


def encode_control(message: ControlMessage) -> bytes:
    """Return a line end for a heartbeat, an error for a problem, b"" for messages that only native clients know."""
    if message.kind in {"hello", "heartbeat"}:
        return LINE_END
    if message.kind == "goodbye":
        return _encode_goodbye(msgspec.json.decode(message.data))
    if message.kind == "gap":
        return _encode_gap(msgspec.json.decode(message.data))
    if message.kind == "warning":
        return _encode_warning(msgspec.json.decode(message.data))
    return b""


def _encode_goodbye(message: Json) -> bytes:
    """Return X's error for a goodbye, or b"" for the end of a replay, which is not an error."""
    kind = DISCONNECT_TYPES.get(message["code"])
    if kind is None:
        return b""
    return _encode_error(
        title="operational-disconnect", disconnect_type=kind, detail=message["reason"],
        type=PROBLEM_TYPE_PREFIX + "operational-disconnect",
    )  # fmt: skip


def _encode_gap(message: Json) -> bytes:
    """Return an error for a gap. X has no such message, but clients show any error."""
    lost = "An unknown number of events" if message["count"] is None else f"{message['count']} events"
    return _encode_error(
        title="Gap", detail=f"{lost} could not be delivered ({message['reason']}).", type="about:blank"
    )


def _encode_warning(message: Json) -> bytes:
    """Return an error if the server disabled a rule, because it no longer matches; b"" for other warnings."""
    if message["code"] != "filter_disabled":
        return b""
    subject = f"The rule {message['rule']}" if message.get("rule") else f"The filter {message['filter']}"
    return _encode_error(
        title="Warning", detail=f"{subject} failed and matches nothing on this stream.", type="about:blank"
    )


def _encode_error(**members: str) -> bytes:
    """Return one error with these members as a line."""
    return _encode({"errors": [members]}) + LINE_END
