"""Where a stream begins: a cursor, a time, or so long ago, looked up on the log.

Whoever comes with a cursor that the log lost is set back to where it went on, and told. What lies above the head is
refused, but not before this server's feed has looked whether the log is what it was: right after a power cut the lost
end lies above the head, until that is noticed. What no feed remembers either (all were down) is no place any more.
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
"""With the clock set back a lost cursor is above the head until the server that had heard it has looked: two beats."""

LOOKUP_INTERVAL_SECONDS = 0.2

MAX_FUTURE_MS = 86_400_000
"""What claims to be of a later time than this from now is waited for by nobody."""


class StreamStart(NamedTuple):
    """The position after which to read, and what is known to be lost before it."""

    position: Position
    known_gap: Gap | None


class _ParsedCursor(NamedTuple):
    """A cursor as it was given, and what it says; ``n`` is None where it says none."""

    text: str
    ms: int
    seq: int
    n: int | None


def _never_received(position: Position) -> bool:  # noqa: ARG001 - whoever asks where nothing is heard
    """Nothing is known beside the log."""
    return False


async def resolve_start(
    value: str,
    log: EventLog,
    *,
    now_ms: Callable[[], Awaitable[int]],
    param: str,
    is_received: Callable[[Position], bool] = _never_received,
) -> StreamStart:
    """Where ``value`` points. Cursors are exclusive, times inclusive and by ``now_ms``, the clock of the log.

    A cursor of what this server has ``is_received`` needs no look at the log. If
    the log has lost that since, who comes now is told of it as those are who stayed.

    Raises :class:`InvalidCursor` for garbage and for what lies above the head, BadRequest for a time to come.
    """
    found = _CURSOR_PATTERN.fullmatch(value)
    if found is not None:
        n = None if found[3] is None else int(found[3])
        position = Position(int(found[1]), int(found[2]), n or 0)
        if is_received(position):
            return StreamStart(position, None)
        return await _start_at_cursor(_ParsedCursor(value, position.ms, position.seq, n), log, now_ms, param)
    return await _start_at_time(value, log, param, await now_ms())


async def _start_at_cursor(
    cursor: _ParsedCursor, log: EventLog, now_ms: Callable[[], Awaitable[int]], param: str
) -> StreamStart:
    text, ms, seq, n = cursor
    if (ms, seq) == (0, 0):
        return await _start_at_beginning(log)
    located = await log.look_up(ms, seq)
    if located.entry is not None and n in (None, located.entry.position.n):
        return StreamStart(located.entry.position, None)
    if not located.was_trimmed(Position(ms, seq, n or 0)):
        located = await _locate_again(ms, seq, log, await now_ms())
    if (ms, seq) > located.head[:2] or ms < EPOCH_MS:
        message = "this cursor is no place on the log: it is from another server, or made up"
        raise InvalidCursor(message, param=param)
    if located.resume_position is not None:
        return StreamStart(located.resume_position, Gap(text, located.resume_position, "rolled_back", None))
    if located.floor is not None and (ms, seq) < located.floor[:2] and located.floor.n > 1:
        return _start_at_floor(text, n if located.rollback_start is None else None, located.floor)
    position = located.previous or LOG_START
    return StreamStart(position, Gap(text, position, "unknown_position", None))


async def _locate_again(ms: int, seq: int, log: EventLog, now_ms: int) -> LogLookup:
    """Once this feed has looked whether the log is what it was; others have a moment to say that they heard more."""
    await log.verify_feed()
    located = await log.look_up(ms, seq)
    ends = time.monotonic() + OTHER_SERVERS_WAIT_SECONDS
    while (ms, seq) > located.head[:2] and ms < now_ms + MAX_FUTURE_MS and time.monotonic() < ends:
        await asyncio.sleep(LOOKUP_INTERVAL_SECONDS)
        located = await log.look_up(ms, seq)
    return located


async def _start_at_beginning(log: EventLog) -> StreamStart:
    """The cursor of an empty log: everything since then, if it is still there."""
    floor = await log.floor()
    return StreamStart(LOG_START, None) if floor is None else _start_at_floor(LOG_START.cursor, 0, floor)


def _start_at_floor(cursor: str, n: int | None, floor: Position) -> StreamStart:
    """From the floor on; a number that does not lie below the floor's is of another history, and counts nothing."""
    position = floor.previous()
    if n == position.n:
        return StreamStart(position, None)
    missed = position.n - n if n is not None and n < position.n else None
    return StreamStart(position, Gap(cursor, position, "trimmed", missed))


async def _start_at_time(value: str, log: EventLog, param: str, now_ms: int) -> StreamStart:
    """A time is still to come if it is so by the clock and by the log, whose clock may have been set back since."""
    ms = _parse_time_ms(value, now_ms, param)
    located = await log.look_up(ms, 0)
    if ms > max(now_ms, located.head.ms):
        raise BadRequest("this time is still to come", param=param)
    if located.previous is not None:
        return StreamStart(located.previous, None)
    if located.floor is None:
        return StreamStart(located.head, None)
    position = located.floor.previous()
    return StreamStart(position, Gap(value, position, "trimmed", None) if position.n else None)


def _parse_time_ms(value: str, now_ms: int, param: str) -> int:
    ago = _AGE_PATTERN.fullmatch(value)
    if ago is not None:
        return max(0, now_ms - int(ago[1]) * _SECONDS_PER_UNIT[ago[2]] * 1000)
    try:
        moment = datetime.fromisoformat(value if _DATE_PATTERN.match(value) else "a month is no time")
        return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        message = "not a cursor, an ISO 8601 time, or an age such as -15m"
        raise InvalidCursor(message, param=param) from None
