"""Encodes messages in Twitter's v2 format: one JSON object and a line end. A heartbeat is a line end alone.

As at Twitter, the streams send Tweets but not the deletion of Tweets, which other APIs of Twitter report.
"""

import logging
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from stream_server.events.entry import Entry
from stream_server.events.one_line import encode_json
from stream_server.hub.client import FILTER_DISABLED, FILTER_TOO_COSTLY
from stream_server.hub.framing import Framing
from stream_server.hub.messages import ControlMessage
from stream_server.web.dialects.status_text import Json
from stream_server.web.dialects.v2_parameters import FieldSelection
from stream_server.web.dialects.v2_problem import PROBLEM_TYPE_PREFIX
from stream_server.web.dialects.v2_status import KnownUsers, render_includes, render_tweet
from stream_server.web.streaming.framing import wrap_chunk, wrap_raw

logger = logging.getLogger(__name__)

LINE_END = b"\r\n"

MAX_CACHED_FRAMINGS = 256
"""Framings that are kept for sharing. Clients beyond these get a framing of their own."""

MEDIA_TYPE = "application/json"

DISABLED_BECAUSE = {FILTER_DISABLED: "failed", FILTER_TOO_COSTLY: "takes too long"}
"""The codes of warnings that a filter or rule was disabled, and the reasons as clients read them."""

DISCONNECT_TYPES = {
    "shutdown": "OperationalDisconnect",
    "too_slow": "SlowReader",
    "token_expired": "ForceDisconnect",
    "token_revoked": "ForceDisconnect",
    "suspended": "ForceDisconnect",
    "resync": "UpstreamOperationalDisconnect",
}


@lru_cache(MAX_CACHED_FRAMINGS)
def select_v2_framing(fields: FieldSelection, *, chunked: bool) -> Framing:
    """Return the framing that encodes Tweets with the members in ``fields``. Equal arguments share one framing."""
    return Framing("v2", TweetEncoder(fields), encode_control, wrap_chunk if chunked else wrap_raw)


@dataclass(frozen=True, slots=True)
class TweetEncoder:
    """Encodes a post: the Tweet in ``data``, expanded objects in ``includes``, matching rules in ``matching_rules``."""

    fields: FieldSelection

    def __call__(self, entry: Entry, matched: bytes | None) -> bytes:
        """Encode a post as one line of JSON, other entries as b"". ``matched`` is the JSON list of matching rules."""
        if entry.kind != "post":
            return b""
        if matched is None:
            return self._encode_shared(entry)
        shared = entry.frame(self)
        return shared and shared[: -len(b"}" + LINE_END)] + b',"matching_rules":' + matched + b"}" + LINE_END

    def _encode_shared(self, entry: Entry) -> bytes:
        """Return a post as all clients get it, without ``matching_rules``. For a faulty post, log this, return b""."""
        try:
            return encode_json(self._render(entry)) + LINE_END
        except (LookupError, TypeError, ValueError) as error:
            logger.warning("cannot render log entry %s in v2: %r", entry.position.cursor, error)
            return b""

    def _render(self, entry: Entry) -> Json:
        status, facts = msgspec.json.decode(entry.wire)["status"], entry.facts
        known_users = KnownUsers(facts.author, facts.original_author, facts.reply_to_login)
        data = {"data": render_tweet(status, self.fields.tweet)}
        includes = render_includes(status, known_users, self.fields) if self.fields.expansions else {}
        return {**data, "includes": includes} if includes else data


def encode_control(message: ControlMessage) -> bytes:
    """Return a control message in v2: a line end for `hello` and `heartbeat`, an error for a problem, else b""."""
    if message.kind in {"hello", "heartbeat"}:
        return LINE_END
    encoders = {"goodbye": _encode_goodbye, "gap": _encode_gap, "warning": _encode_warning}
    encode = encoders.get(message.kind)
    return b"" if encode is None else encode(msgspec.json.decode(message.data))


def _encode_goodbye(message: Json) -> bytes:
    """Encode a `goodbye` as Twitter's disconnect error, or as b"" if the stream reached its requested end."""
    kind = DISCONNECT_TYPES.get(message["code"])
    if kind is None:
        return b""
    title = "operational-disconnect"
    problem = PROBLEM_TYPE_PREFIX + title
    return _encode_error(title=title, disconnect_type=kind, detail=message["reason"], type=problem)


def _encode_gap(message: Json) -> bytes:
    """Encode a `gap` (lost events) as an error. Twitter has no such message, but clients show any error."""
    lost = "An unknown number of events" if message["count"] is None else f"{message['count']} events"
    detail = f"{lost} could not be delivered ({message['reason']})."
    return _encode_error(title="Gap", detail=detail, type="about:blank")


def _encode_warning(message: Json) -> bytes:
    """Encode the warning that a rule or filter was disabled as an error, other warnings as b""."""
    if message["code"] not in DISABLED_BECAUSE:
        return b""
    subject = f"The rule {message['rule']}" if message.get("rule") else f"The filter {message['filter']}"
    detail = f"{subject} {DISABLED_BECAUSE[message['code']]} and matches nothing on this stream."
    return _encode_error(title="Warning", detail=detail, type="about:blank")


def _encode_error(**members: str) -> bytes:
    return encode_json({"errors": [members]}) + LINE_END
