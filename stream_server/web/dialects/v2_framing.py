"""How messages of v2 become bytes: one JSON object and a line end; a line end alone says that the stream lives.

Equal askings have one framing, so that their clients share its bytes. The streams bring Tweets and take none back: whom
they told of a Tweet that is gone by now has to hear of it elsewhere, as with X.
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
"""So many askings keep the framing that they share; another than these is made anew."""

MEDIA_TYPE = "application/json"

DISCONNECT_TYPES = {
    "shutdown": "OperationalDisconnect",
    "too_slow": "SlowReader",
    "token_expired": "ForceDisconnect",
    "token_revoked": "ForceDisconnect",
    "suspended": "ForceDisconnect",
    "resync": "UpstreamOperationalDisconnect",
}
"""What X calls our reasons to end a stream."""

_encode = msgspec.json.encode


@lru_cache(MAX_CACHED_FRAMINGS)
def select_v2_framing(fields: FieldSelection, *, chunked: bool) -> Framing:
    """The one shared framing of those who want the same in the same version of HTTP."""
    return Framing("v2", TweetEncoder(fields), encode_control, wrap_chunk if chunked else wrap_raw)


@dataclass(frozen=True, slots=True)
class TweetEncoder:
    """A post as ``data``, what was asked for beside it as ``render_includes``, and all rules that matched.

    All but the rules is made once for all who want the same.
    """

    fields: FieldSelection

    def __call__(self, entry: Entry, matched: bytes | None) -> bytes:
        if entry.kind != "post":
            return b""
        if matched is None:
            return self._encode_shared(entry)
        shared = entry.frame(self)
        return shared and shared[: -len(b"}" + LINE_END)] + b',"matching_rules":' + matched + b"}" + LINE_END

    def _encode_shared(self, entry: Entry) -> bytes:
        """What all get who want the same; nothing of what holds no whole status, which is none of ours."""
        try:
            return _encode(self._render(entry)) + LINE_END
        except (LookupError, TypeError, ValueError) as error:
            logger.warning("%s on the log cannot be told in v2: %r", entry.position.cursor, error)
            return b""

    def _render(self, entry: Entry) -> Json:
        status, facts = msgspec.json.decode(entry.wire)["status"], entry.facts
        people = KnownUsers(facts.author, facts.original_author, facts.reply_to_login)
        told = {"data": render_tweet(status, self.fields.tweet)}
        beside = render_includes(status, people, self.fields) if self.fields.expansions else {}
        return {**told, "includes": beside} if beside else told


def encode_control(message: ControlMessage) -> bytes:
    """A sign of life, or what went wrong; what only our own clients understand is not told."""
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
    """A replay that reached its end is only closed: nothing went wrong."""
    kind = DISCONNECT_TYPES.get(message["code"])
    if kind is None:
        return b""
    return _encode_error(
        title="operational-disconnect", disconnect_type=kind, detail=message["reason"],
        type=PROBLEM_TYPE_PREFIX + "operational-disconnect",
    )  # fmt: skip


def _encode_gap(message: Json) -> bytes:
    """X has no word for it; clients show any error."""
    many = "An unknown number of events" if message["count"] is None else f"{message['count']} events"
    return _encode_error(
        title="Gap", detail=f"{many} could not be delivered ({message['reason']}).", type="about:blank"
    )


def _encode_warning(message: Json) -> bytes:
    """Of a rule that failed here its owner must hear: it matches nothing any more."""
    if message["code"] != "filter_disabled":
        return b""
    which = f"The rule {message['rule']}" if message.get("rule") else f"The filter {message['filter']}"
    return _encode_error(
        title="Warning", detail=f"{which} failed and matches nothing on this stream.", type="about:blank"
    )


def _encode_error(**members: str) -> bytes:
    return _encode({"errors": [members]}) + LINE_END
