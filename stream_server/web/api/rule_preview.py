"""What a rule would have brought of the last minutes, as an answer."""

from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from filters.rules.rule import Rule
from stream_server.events.position import Position, format_iso_time
from stream_server.hub.delivery import Delivery
from stream_server.hub.preview import PreviewResult, RulePreview
from stream_server.store.log.event_log import EventLog
from stream_server.web.http.app_keys import HUB, STORE
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.stream_plan import plan_stream

MAX_SCANNED_ENTRIES = 50_000
"""So many entries of the log are looked at, the latest."""


class _StatusMessage(msgspec.Struct):
    status: msgspec.Raw


class _RuleMatch(msgspec.Struct):
    """The parts of the previewed rule that matched."""

    parts: msgspec.Raw


async def run_preview(request: web.Request, rule: Rule, minutes: int) -> dict[str, Any]:
    """The answer for whoever asks; raises errors.Unavailable while the log cannot be read."""
    hub = request.app[HUB]
    parameters = {"rule": rule.text, "kinds": "post", "explain": "true", "since": f"-{minutes}m"}
    made = await plan_stream(request, parameters, select_framing(NDJSON, chunked=True))
    asked_ms, head = hub.now_ms(), hub.head
    start = await limit_start(request.app[STORE].log, made.subscribe_request.position, head)
    counted = await RulePreview(hub, made.subscribe_request._replace(position=start)).run()
    from_ms = max(asked_ms - minutes * 60_000, start.ms)
    span = TimeSpan(
        from_ms, counted.started_ms if counted.end_position >= head else max(from_ms, counted.end_position.ms)
    )
    complete = counted.is_complete and made.known_gap is None and start == made.subscribe_request.position
    return preview_answer(counted, counted.end_position.n - start.n, span, complete=complete)


async def limit_start(log: EventLog, start: Position, head: Position) -> Position:
    """The place behind which no more entries are than are looked at, found by its time."""
    early, late, found = start.ms, head.ms, start
    while head.n - start.n > MAX_SCANNED_ENTRIES and late - early > 1:
        middle = (early + late) // 2
        place = (await log.look_up(middle, 0)).previous
        if place is not None and head.n - place.n <= MAX_SCANNED_ENTRIES:
            late, found = middle, place
        else:
            early = middle
    return found


class TimeSpan(NamedTuple):
    """The time that a preview is about, in ms since 1970."""

    from_ms: int
    to_ms: int

    @property
    def minutes(self) -> float:
        """How long it is; never nothing."""
        return max(self.to_ms - self.from_ms, 1) / 60_000


def preview_answer(result: PreviewResult, scanned_entries: int, span: TimeSpan, *, complete: bool) -> dict[str, Any]:
    """The members of the answer; the latest example comes first."""
    return {
        "matched": result.matched_count,
        "scanned": scanned_entries,
        "from": format_iso_time(span.from_ms),
        "to": format_iso_time(span.to_ms),
        "complete": complete,
        "per_minute": round(result.matched_count / span.minutes, 2),
        "examples": [_example(picked) for picked in reversed(result.examples)],
    }


def _example(picked: Delivery) -> dict[str, Any]:
    (mark,) = msgspec.json.decode(picked.matched_json or b"", type=list[_RuleMatch])
    return {"status": msgspec.json.decode(picked.entry.wire, type=_StatusMessage).status, "parts": mark.parts}
