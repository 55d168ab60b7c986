"""Finds where a stream starts on the log, from a cursor, a time or an age such as `-15m`.

Redis may lose the end of the log. A client with a cursor of the lost part restarts where the log continued, and gets a
`gap`. The server refuses a cursor above the head, but first this server's feed checks the log: right after a power cut
lost cursors lie above the head until a feed notices. If every server was down meanwhile, no feed remembers the lost
part, and its cursors are invalid.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple

from stream_server.errors import BadRequest, InvalidCursor
from stream_server.events.position import EPOCH_MS, LOG_START, Position, parse_age_ms
from stream_server.hub.messages import TRIMMED, Gap
from stream_server.store.log.event_log import EventLog, LogLookup

_CURSOR_PATTERN = re.compile(r"(\d{1,15})-(\d{1,6})(?:\.(\d{1,15}))?", re.ASCII)

OTHER_SERVERS_WAIT_SECONDS = 2.0
"""Seconds to wait for another server to record a rollback: two intervals of its check.

If the clock was set back, a lost cursor stays above the head until the server that received it has checked the log.
"""


class StreamStart(NamedTuple):
    """The start of a stream: after ``position``. ``known_gap`` describes entries lost before it, or is None.

    :data:`AT_HEAD` stands for the start at the head, wherever this is when the stream opens.
    """

    position: Position
    known_gap: Gap | None = None

    def position_at(self, head: Position) -> Position:
        """Return the position after which a stream begins that opens while ``head`` is the head."""
        return head if self is AT_HEAD else self.position


AT_HEAD = StreamStart(LOG_START)
"""The start of a stream that asks for no other. Every head is at its position already."""


async def resolve_start(value: str, log: EventLog, *, now_ms: Callable[[], Awaitable[int]], param: str) -> StreamStart:
    """Return the start that ``value`` names: after a cursor, at an ISO 8601 time, or at an age such as `-15m`.

    ``param`` is the parameter's name in errors. Raises InvalidCursor if ``value`` is none of these or is a cursor above
    the log's head, and BadRequest for a future time.
    """
    cursor = _CURSOR_PATTERN.fullmatch(value)
    if cursor is not None:
        return await _start_at_cursor(cursor, log, now_ms, param)
    return await _start_at_time(value, log, param, await now_ms())


def parse_cursor(text: str) -> Position | None:
    """Return the position that a cursor names, or None if the text is no cursor or lacks the number in the log."""
    cursor = _CURSOR_PATTERN.fullmatch(text)
    return None if cursor is None or cursor[3] is None else Position(int(cursor[1]), int(cursor[2]), int(cursor[3]))


def read_cursor(text: object) -> Position:
    """Return the position that a cursor to acknowledge names.

    Raises InvalidCursor if it is no whole cursor, or from before all logs: no stream could begin there.
    """
    position = parse_cursor(text) if isinstance(text, str) else None
    if position is None or (position.ms < EPOCH_MS and position != LOG_START):
        raise InvalidCursor("send the cursor of a message or of an answer, as text", param="cursor")
    return position


async def _start_at_cursor(
    cursor: re.Match[str], log: EventLog, now_ms: Callable[[], Awaitable[int]], param: str
) -> StreamStart:
    """Return a cursor's start, with a gap if its entry is missing. Raises InvalidCursor for a cursor above the head."""
    text, ms, seq = cursor[0], int(cursor[1]), int(cursor[2])
    n = None if cursor[3] is None else int(cursor[3])  # the number of the entry in the log
    if (ms, seq) == (0, 0):  # the cursor of an empty log: start before the first entry ever written
        return _start_at_floor(LOG_START.cursor, 0, await log.look_up(0, 0))
    located = await log.look_up(ms, seq)
    if located.entry is not None and n in (None, located.entry.position.n):
        return StreamStart(located.entry.position)
    if not located.was_trimmed(Position(ms, seq, n or 0)):
        located = await _locate_again(ms, seq, log, await now_ms())
    if (ms, seq) > located.head[:2] or ms < EPOCH_MS:
        raise InvalidCursor("this cursor is not a position of this log", param=param)
    if located.resume_position is not None:
        return StreamStart(located.resume_position, Gap(text, located.resume_position, "rolled_back", None))
    if located.floor is not None and (ms, seq) < located.floor[:2] and located.floor.n > 1:
        return _start_at_floor(text, n if located.rollback_start is None else None, located)
    position = located.previous or LOG_START
    return StreamStart(position, Gap(text, position, "unknown_position", None))


async def _locate_again(ms: int, seq: int, log: EventLog, now_ms: int) -> LogLookup:
    """Look up a cursor above the log's head once more, after this server's feed has checked the log for a rollback.

    A rollback explains such a cursor. If the cursor is still above the head, repeat the look-up for at most
    :data:`OTHER_SERVERS_WAIT_SECONDS`, because another server may be about to record a rollback. A cursor that lies
    more than a day in the future is not worth a wait.
    """
    await log.verify_feed()
    located = await log.look_up(ms, seq)
    deadline = time.monotonic() + OTHER_SERVERS_WAIT_SECONDS
    while (ms, seq) > located.head[:2] and ms < now_ms + 86_400_000 and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
        located = await log.look_up(ms, seq)
    return located


def _start_at_floor(cursor: str, n: int | None, located: LogLookup) -> StreamStart:
    """Start at the oldest entry that the log still has, with a gap that counts the missed entries.

    ``n`` is the entry number in the client's cursor. If ``n`` is None or greater than the number of the oldest entry,
    the count is unknown, and the gap has none.
    """
    position = LOG_START if located.floor is None else located.floor.previous()
    if n == position.n or (n == LOG_START.n and not located.has_lost_front):
        return StreamStart(position)
    missed = position.n - n if n is not None and n < position.n else None
    return StreamStart(position, Gap(cursor, position, TRIMMED, missed))


async def _start_at_time(value: str, log: EventLog, param: str, now_ms: int) -> StreamStart:
    """Start at the first entry at or after a time. Raises BadRequest for a time later than both now and the head."""
    ms = parse_time_ms(value, now_ms, param)
    located = await log.look_up(ms, 0)
    if ms > max(now_ms, located.head.ms):
        raise BadRequest("this time is in the future", param=param)
    if located.previous is not None:
        return StreamStart(located.previous)
    if located.floor is None:
        return StreamStart(located.head)
    position = located.floor.previous()
    return StreamStart(position, Gap(value, position, TRIMMED, None) if located.has_lost_front else None)


def parse_time_ms(value: str, now_ms: int, param: str) -> int:
    """Return an ISO 8601 time (UTC if without zone) or an age as ms since 1970. Raises InvalidCursor for other text."""
    age_ms = parse_age_ms(value)
    if age_ms is not None:
        return max(0, now_ms - age_ms)
    has_date = re.match(r"\d{4}-\d{2}-\d{2}", value, re.ASCII)
    try:
        moment = datetime.fromisoformat(value if has_date else "(not a full date)")
        return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise InvalidCursor("not a cursor, an ISO 8601 time, or an age such as -15m", param=param) from None
