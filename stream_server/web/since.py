"""Where a stream begins: a cursor, a time, or so long ago, looked up on the log."""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from stream_server.errors import BadRequest, InvalidCursor
from stream_server.events import EPOCH_MS, START, Position
from stream_server.hub.control import Gap
from stream_server.store.log import Log

_CURSOR = re.compile(r"(\d{1,15})-(\d{1,6})(?:\.(\d{1,15}))?", re.ASCII)
_AGO = re.compile(r"-(\d{1,9})([smhd])", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Begin(NamedTuple):
    """The position after which to read, and what is known to be lost before it."""

    position: Position
    lost: Gap | None


async def begin(value: str, log: Log, *, now_ms: int, param: str) -> Begin:
    """Where ``value`` points. Cursors are exclusive, times inclusive.

    Raises :class:`InvalidCursor` for garbage and for what lies above the head, BadRequest for a time to come.
    """
    cursor = _CURSOR.fullmatch(value)
    if cursor is not None:
        n = None if cursor[3] is None else int(cursor[3])
        return await _at_cursor(value, int(cursor[1]), int(cursor[2]), n, log, param)
    return await _at_time(value, _time_ms(value, now_ms, param), log, param, now_ms)


async def _at_cursor(cursor: str, ms: int, seq: int, n: int | None, log: Log, param: str) -> Begin:
    if (ms, seq) == (0, 0):
        return await _from_the_start(log)
    located = await log.locate(ms, seq)
    if (ms, seq) > located.head[:2] or ms < EPOCH_MS or (n or 0) > located.head.n:
        message = "this cursor is no place on the log: it is from another server, or made up"
        raise InvalidCursor(message, param=param)
    if located.found is not None and n in (None, located.found.position.n):
        return Begin(located.found.position, None)
    if located.floor is not None and (ms, seq) < located.floor[:2]:
        return _below_floor(cursor, n, located.floor)
    position = located.before or located.head
    return Begin(position, Gap(cursor, position, "unknown_position", None))


async def _from_the_start(log: Log) -> Begin:
    """The cursor of an empty log: everything since then, if it is still there."""
    floor = await log.floor()
    return Begin(START, None) if floor is None else _below_floor(START.cursor, 0, floor)


def _below_floor(cursor: str, n: int | None, floor: Position) -> Begin:
    """From the floor on; a number that does not lie below the floor's is of another history, and counts nothing."""
    position = floor.before()
    if n == position.n:
        return Begin(position, None)
    missed = position.n - n if n is not None and n < position.n else None
    return Begin(position, Gap(cursor, position, "trimmed", missed))


async def _at_time(value: str, ms: int, log: Log, param: str, now_ms: int) -> Begin:
    if ms > now_ms:
        raise BadRequest("this time is still to come", param=param)
    located = await log.locate(ms, 0)
    if located.before is not None:
        return Begin(located.before, None)
    if located.floor is None:
        return Begin(located.head, None)
    position = located.floor.before()
    return Begin(position, Gap(value, position, "trimmed", None) if position.n else None)


def _time_ms(value: str, now_ms: int, param: str) -> int:
    ago = _AGO.fullmatch(value)
    if ago is not None:
        return max(0, now_ms - int(ago[1]) * _SECONDS[ago[2]] * 1000)
    try:
        moment = datetime.fromisoformat(value if _DATE.match(value) else "a month is no time")
        return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        message = "not a cursor, an ISO 8601 time, or an age such as -15m"
        raise InvalidCursor(message, param=param) from None
