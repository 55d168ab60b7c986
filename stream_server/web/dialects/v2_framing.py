"""How messages of v2 become bytes: one JSON object and a line end; a line end alone says that the stream lives.

Equal askings have one framing, so that their clients share its bytes. The streams bring Tweets and take none back: whom
they told of a Tweet that is gone by now has to hear of it elsewhere, as with X.
"""

import logging
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from stream_server.events import Entry
from stream_server.hub.control import Control
from stream_server.hub.group import Framing
from stream_server.web.dialects.v2_fields import Wanted
from stream_server.web.dialects.v2_problem import PROBLEMS
from stream_server.web.dialects.v2_status import People, includes, tweet
from stream_server.web.dialects.words import Json
from stream_server.web.framing import chunk, raw

logger = logging.getLogger(__name__)

END = b"\r\n"

KEPT = 256
"""So many askings keep the framing that they share; another than these is made anew."""

MEDIA_TYPE = "application/json"

DISCONNECTS = {
    "shutdown": "OperationalDisconnect",
    "too_slow": "SlowReader",
    "token_expired": "ForceDisconnect",
    "token_revoked": "ForceDisconnect",
    "suspended": "ForceDisconnect",
    "resync": "UpstreamOperationalDisconnect",
}
"""What X calls our reasons to end a stream."""

_encode = msgspec.json.encode


@lru_cache(KEPT)
def framing(wanted: Wanted, *, chunked: bool) -> Framing:
    """The one shared framing of those who want the same in the same version of HTTP."""
    return Framing("v2", Encode(wanted), control, chunk if chunked else raw)


@dataclass(frozen=True, slots=True)
class Encode:
    """A post as ``data``, what was asked for beside it as ``includes``, and all rules that matched.

    All but the rules is made once for all who want the same.
    """

    wanted: Wanted

    def __call__(self, entry: Entry, matched: bytes | None) -> bytes:
        if entry.kind != "post":
            return b""
        if matched is None:
            return self._shared(entry)
        shared = entry.frame(self)
        return shared and shared[: -len(b"}" + END)] + b',"matching_rules":' + matched + b"}" + END

    def _shared(self, entry: Entry) -> bytes:
        """What all get who want the same; nothing of what holds no whole status, which is none of ours."""
        try:
            return _encode(self._told(entry)) + END
        except (LookupError, TypeError, ValueError) as error:
            logger.warning("%s on the log cannot be told in v2: %r", entry.position.cursor, error)
            return b""

    def _told(self, entry: Entry) -> Json:
        status, facts = msgspec.json.decode(entry.wire)["status"], entry.facts
        people = People(facts.author, facts.original_author, facts.reply_to_login)
        told = {"data": tweet(status, self.wanted.tweet)}
        beside = includes(status, people, self.wanted) if self.wanted.expansions else {}
        return {**told, "includes": beside} if beside else told


def control(message: Control) -> bytes:
    """A sign of life, or what went wrong; what only our own clients understand is not told."""
    if message.kind in {"hello", "heartbeat"}:
        return END
    if message.kind == "goodbye":
        return _goodbye(msgspec.json.decode(message.data))
    if message.kind == "gap":
        return _gap(msgspec.json.decode(message.data))
    if message.kind == "warning":
        return _warning(msgspec.json.decode(message.data))
    return b""


def _goodbye(told: Json) -> bytes:
    """A replay that reached its end is only closed: nothing went wrong."""
    kind = DISCONNECTS.get(told["code"])
    if kind is None:
        return b""
    return _error(
        title="operational-disconnect", disconnect_type=kind, detail=told["reason"],
        type=PROBLEMS + "operational-disconnect",
    )  # fmt: skip


def _gap(told: Json) -> bytes:
    """X has no word for it; clients show any error."""
    many = "An unknown number of events" if told["count"] is None else f"{told['count']} events"
    return _error(title="Gap", detail=f"{many} could not be delivered ({told['reason']}).", type="about:blank")


def _warning(told: Json) -> bytes:
    """Of a rule that failed here its owner must hear: it matches nothing any more."""
    if told["code"] != "filter_disabled":
        return b""
    which = f"The rule {told['rule']}" if told.get("rule") else f"The filter {told['filter']}"
    return _error(title="Warning", detail=f"{which} failed and matches nothing on this stream.", type="about:blank")


def _error(**members: str) -> bytes:
    return _encode({"errors": [members]}) + END
