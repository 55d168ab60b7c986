"""What a rule would have brought of the last minutes, as an answer."""

from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from filters.rules.rule import Rule
from stream_server.events import Position, iso
from stream_server.hub.preview import Counted, Preview
from stream_server.hub.reader import Picked
from stream_server.store.log import Log
from stream_server.web.framing import NDJSON, framing
from stream_server.web.keys import HUB, STORE
from stream_server.web.subscription import plan

MOST = 50_000
"""So many entries of the log are looked at, the latest."""


class _Shown(msgspec.Struct):
    status: msgspec.Raw


class _Mark(msgspec.Struct):
    """What of the one rule matched."""

    parts: msgspec.Raw


async def previewed(request: web.Request, rule: Rule, minutes: int) -> dict[str, Any]:
    """The answer for whoever asks; raises errors.Unavailable while the log cannot be read."""
    hub = request.app[HUB]
    parameters = {"rule": rule.text, "kinds": "post", "explain": "true", "since": f"-{minutes}m"}
    made = await plan(request, parameters, framing(NDJSON, chunked=True))
    asked_ms, head = hub.now_ms(), hub.head
    start = await latest(request.app[STORE].log, made.ask.position, head)
    counted = await Preview(hub, made.ask._replace(position=start)).run()
    from_ms = max(asked_ms - minutes * 60_000, start.ms)
    span = Span(from_ms, counted.began_ms if counted.upto >= head else max(from_ms, counted.upto.ms))
    complete = counted.whole and made.lost is None and start == made.ask.position
    return told(counted, counted.upto.n - start.n, span, complete=complete)


async def latest(log: Log, start: Position, head: Position) -> Position:
    """The place behind which no more entries are than are looked at, found by its time."""
    early, late, found = start.ms, head.ms, start
    while head.n - start.n > MOST and late - early > 1:
        middle = (early + late) // 2
        place = (await log.locate(middle, 0)).before
        if place is not None and head.n - place.n <= MOST:
            late, found = middle, place
        else:
            early = middle
    return found


class Span(NamedTuple):
    """The time that a preview is about, in ms since 1970."""

    from_ms: int
    to_ms: int

    @property
    def minutes(self) -> float:
        """How long it is; never nothing."""
        return max(self.to_ms - self.from_ms, 1) / 60_000


def told(counted: Counted, scanned: int, span: Span, *, complete: bool) -> dict[str, Any]:
    """The members of the answer; the latest example comes first."""
    return {
        "matched": counted.matched,
        "scanned": scanned,
        "from": iso(span.from_ms),
        "to": iso(span.to_ms),
        "complete": complete,
        "per_minute": round(counted.matched / span.minutes, 2),
        "examples": [_example(picked) for picked in reversed(counted.examples)],
    }


def _example(picked: Picked) -> dict[str, Any]:
    (mark,) = msgspec.json.decode(picked.matched or b"", type=list[_Mark])
    return {"status": msgspec.json.decode(picked.entry.wire, type=_Shown).status, "parts": mark.parts}
