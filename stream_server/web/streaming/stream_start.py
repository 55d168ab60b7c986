"""Finds where a stream starts on the log, from a cursor, a time or an age such as `-15m`.

Redis may lose the end of the log. A client with a cursor of the lost part restarts where the log continued, and gets a
`gap`. A cursor above the head is refused, but only after this server's feed has checked the log: right after a power
cut the lost part lies above the head until a feed notices. If every server was down meanwhile, no feed remembers the
lost part, and its cursors are invalid.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple

from stream_server.errors import BadRequest, InvalidCursor
from stream_server.events.position import EPOCH_MS, LOG_START, Position
from stream_server.hub.messages import Gap
from stream_server.store.log.event_log import EventLog, LogLookup

_CURSOR_PATTERN = re.compile(r"(\d{1,15})-(\d{1,6})(?:\.(\d{1,15}))?", re.ASCII)
_AGE_PATTERN = re.compile(r"-(\d{1,9})([smhd])", re.ASCII)
_DATE_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}

OTHER_SERVERS_WAIT_SECONDS = 2.0
"""Seconds to wait for another server to record a rollback: two intervals of its check.

If the clock was set back, a lost cursor stays above the head until the server that received it has checked the log.
"""

LOOKUP_INTERVAL_SECONDS = 0.2
"""Seconds between two look-ups while waiting for other servers."""

MAX_FUTURE_MS = 86_400_000
"""The server does not wait for cursors that lie further in the future than this many milliseconds."""


class StreamStart(NamedTuple):
    """Where a stream starts.

    Attributes:
        position: The stream delivers the entries after this position.
        known_gap: What is already known to be lost before it, or None.
    """

    position: Position
    known_gap: Gap | None


class _ParsedCursor(NamedTuple):
    """The text of a cursor and its numbers. ``n`` is None if the cursor lacks it."""

    text: str
    ms: int
    seq: int
    n: int | None


def _never_received(position: Position) -> bool:  # noqa: ARG001 - the signature of `is_received`
    """Return False: there is no feed, so only the log can tell what exists."""
    return False


async def resolve_start(
    value: str,
    log: EventLog,
    *,
    now_ms: Callable[[], Awaitable[int]],
    param: str,
    is_received: Callable[[Position], bool] = _never_received,
) -> StreamStart:
    """Find the start position that ``value`` names. Cursors are exclusive, times inclusive.

    Args:
        value: A cursor, an ISO 8601 time, or an age such as `-15m`.
        log: The log on which to look up the position.
        now_ms: Returns the time of the log's clock in milliseconds.
        param: Name of the parameter that errors mention.
        is_received: Whether this server has received an entry at a position. Then the log needs no look-up. If the log
            has lost the entry since, the client gets the same notice as the clients that stayed connected.

    Raises:
        InvalidCursor: ``value`` has no valid form, or is a cursor above the head.
        BadRequest: The time is in the future.
    """
    cursor = _CURSOR_PATTERN.fullmatch(value)
    if cursor is not None:
        n = None if cursor[3] is None else int(cursor[3])
        position = Position(int(cursor[1]), int(cursor[2]), n or 0)
        if is_received(position):
            return StreamStart(position, None)
        return await _start_at_cursor(_ParsedCursor(value, position.ms, position.seq, n), log, now_ms, param)
    return await _start_at_time(value, log, param, await now_ms())


async def _start_at_cursor(
    cursor: _ParsedCursor, log: EventLog, now_ms: Callable[[], Awaitable[int]], param: str
) -> StreamStart:
    """Look up the cursor.

    If its entry is missing, find out why: rolled back, trimmed, or unknown; return the matching gap.

    Raises InvalidCursor for a cursor above the head.
    """
    text, ms, seq, n = cursor
    if (ms, seq) == (0, 0):
        return await _start_at_beginning(log)
    located = await log.look_up(ms, seq)
    if located.entry is not None and n in (None, located.entry.position.n):
        return StreamStart(located.entry.position, None)
    if not located.was_trimmed(Position(ms, seq, n or 0)):
        located = await _locate_again(ms, seq, log, await now_ms())
    if (ms, seq) > located.head[:2] or ms < EPOCH_MS:
        message = "this cursor is not a position of this log"
        raise InvalidCursor(message, param=param)
    if located.resume_position is not None:
        return StreamStart(located.resume_position, Gap(text, located.resume_position, "rolled_back", None))
    if located.floor is not None and (ms, seq) < located.floor[:2] and located.floor.n > 1:
        return _start_at_floor(text, n if located.rollback_start is None else None, located.floor)
    position = located.previous or LOG_START
    return StreamStart(position, Gap(text, position, "unknown_position", None))


async def _locate_again(ms: int, seq: int, log: EventLog, now_ms: int) -> LogLookup:
    """Look up the position again after this server's feed has verified the log.

    If the position is still above the head, give other servers :data:`OTHER_SERVERS_WAIT_SECONDS` to record a rollback.
    """
    await log.verify_feed()
    located = await log.look_up(ms, seq)
    deadline = time.monotonic() + OTHER_SERVERS_WAIT_SECONDS
    while (ms, seq) > located.head[:2] and ms < now_ms + MAX_FUTURE_MS and time.monotonic() < deadline:
        await asyncio.sleep(LOOKUP_INTERVAL_SECONDS)
        located = await log.look_up(ms, seq)
    return located


async def _start_at_beginning(log: EventLog) -> StreamStart:
    """Start from the cursor of an empty log: everything ever written, with a gap if the oldest entries were trimmed."""
    floor = await log.floor()
    return StreamStart(LOG_START, None) if floor is None else _start_at_floor(LOG_START.cursor, 0, floor)


def _start_at_floor(cursor: str, n: int | None, floor: Position) -> StreamStart:
    """Start at the oldest entry that the log still has, with a gap that counts the missed entries.

    ``n`` is the cursor's number. If it is not below the floor's, it belongs to another history, and the count is
    unknown.
    """
    position = floor.previous()
    if n == position.n:
        return StreamStart(position, None)
    missed = position.n - n if n is not None and n < position.n else None
    return StreamStart(position, Gap(cursor, position, "trimmed", missed))


async def _start_at_time(value: str, log: EventLog, param: str, now_ms: int) -> StreamStart:
    """Start at the first entry of that time or later.

    Raises BadRequest if the time is in the future both by the clock and by the head of the log. The log may be ahead,
    because its clock may have been set back since.
    """
    ms = _parse_time_ms(value, now_ms, param)
    located = await log.look_up(ms, 0)
    if ms > max(now_ms, located.head.ms):
        raise BadRequest("this time is in the future", param=param)
    if located.previous is not None:
        return StreamStart(located.previous, None)
    if located.floor is None:
        return StreamStart(located.head, None)
    position = located.floor.previous()
    return StreamStart(position, Gap(value, position, "trimmed", None) if position.n else None)


def _parse_time_ms(value: str, now_ms: int, param: str) -> int:
    """Parse an ISO 8601 time or an age, and return milliseconds since 1970. A time without a zone is UTC.

    Raises InvalidCursor for any other text.
    """
    age = _AGE_PATTERN.fullmatch(value)
    if age is not None:
        return max(0, now_ms - int(age[1]) * _SECONDS_PER_UNIT[age[2]] * 1000)
    try:
        moment = datetime.fromisoformat(value if _DATE_PATTERN.match(value) else "(not a full date)")
        return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        message = "not a cursor, an ISO 8601 time, or an age such as -15m"
        raise InvalidCursor(message, param=param) from None
