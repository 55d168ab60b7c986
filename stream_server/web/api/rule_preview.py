"""What a rule would have matched in the last minutes: it scans the log and builds the answer."""

from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from filters.rules.rule import Rule
from stream_server.events.position import Position, format_iso_time
from stream_server.hub.catchup.reader import Delivery
from stream_server.hub.preview import PreviewResult, RulePreview
from stream_server.store.log.event_log import EventLog
from stream_server.web.http.app_keys import HUB, STORE
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.stream_plan import plan_stream

MAX_SCANNED_ENTRIES = 50_000
"""Most entries that a preview scans. If the time asked for has more, the preview scans the latest."""


class _StatusMessage(msgspec.Struct):
    """The ``status`` of a ``post`` message, still encoded."""

    status: msgspec.Raw


class _RuleMatch(msgspec.Struct):
    """The parts of the one rule that match, still encoded."""

    parts: msgspec.Raw


class TimeSpan(NamedTuple):
    """The time that a preview covers, in milliseconds since 1970."""

    from_ms: int
    to_ms: int

    @property
    def minutes(self) -> float:
        """Its length in minutes, never zero."""
        return max(self.to_ms - self.from_ms, 1) / 60_000


async def run_preview(request: web.Request, rule: Rule, minutes: int) -> dict[str, Any]:
    """Scan the last ``minutes`` of the log for the caller and return the answer's members.

    Raises errors.Unavailable while the server cannot read the log.
    """
    hub = request.app[HUB]
    parameters = {"rule": rule.text, "kinds": "post", "explain": "true", "since": f"-{minutes}m"}
    plan = await plan_stream(request, parameters, select_framing(NDJSON, chunked=True))
    asked_ms, head = hub.now_ms(), hub.head
    start = await limit_start(request.app[STORE].log, plan.subscribe_request.position, head)
    result = await RulePreview(hub, plan.subscribe_request._replace(position=start)).run()
    from_ms = max(asked_ms - minutes * 60_000, start.ms)
    to_ms = result.started_ms if result.end_position >= head else max(from_ms, result.end_position.ms)
    complete = result.is_complete and plan.known_gap is None and start == plan.subscribe_request.position
    return preview_answer(result, result.end_position.n - start.n, TimeSpan(from_ms, to_ms), complete=complete)


async def limit_start(log: EventLog, start: Position, head: Position) -> Position:
    """Return ``start``, or a later position with at most :data:`MAX_SCANNED_ENTRIES` entries up to ``head``.

    The function finds the position by bisection over time, because the log finds entries by time only.
    """
    early_ms, late_ms, found = start.ms, head.ms, start
    while head.n - start.n > MAX_SCANNED_ENTRIES and late_ms - early_ms > 1:
        middle_ms = (early_ms + late_ms) // 2
        position = (await log.look_up(middle_ms, 0)).previous
        if position is not None and head.n - position.n <= MAX_SCANNED_ENTRIES:
            late_ms, found = middle_ms, position
        else:
            early_ms = middle_ms
    return found


def preview_answer(result: PreviewResult, scanned_entries: int, span: TimeSpan, *, complete: bool) -> dict[str, Any]:
    """Return the members of the answer. The latest example comes first."""
    return {
        "matched": result.matched_count,
        "scanned": scanned_entries,
        "from": format_iso_time(span.from_ms),
        "to": format_iso_time(span.to_ms),
        "complete": complete,
        "per_minute": round(result.matched_count / span.minutes, 2),
        "examples": [_example(delivery) for delivery in reversed(result.examples)],
    }


def _example(delivery: Delivery) -> dict[str, Any]:
    """Return the status of a match and the parts of the rule that match it."""
    (match,) = msgspec.json.decode(delivery.matched_json or b"", type=list[_RuleMatch])
    return {"status": msgspec.json.decode(delivery.entry.wire, type=_StatusMessage).status, "parts": match.parts}
