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
from stream_server.events import EPOCH_MS, START, Position
from stream_server.hub.control import Gap
from stream_server.store.log import Located, Log

_CURSOR = re.compile(r"(\d{1,15})-(\d{1,6})(?:\.(\d{1,15}))?", re.ASCII)
_AGO = re.compile(r"-(\d{1,9})([smhd])", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

OTHERS_SECONDS = 2.0
"""With the clock set back a lost cursor is above the head until the server that had heard it has looked: two beats."""

LOOK_SECONDS = 0.2

BELIEVED_MS = 86_400_000
"""What claims to be of a later time than this from now is waited for by nobody."""


class Begin(NamedTuple):
    """The position after which to read, and what is known to be lost before it."""

    position: Position
    lost: Gap | None


class _Cursor(NamedTuple):
    """A cursor as it was given, and what it says; ``n`` is None where it says none."""

    text: str
    ms: int
    seq: int
    n: int | None


def _unheard(position: Position) -> bool:  # noqa: ARG001 - whoever asks where nothing is heard
    """Nothing is known beside the log."""
    return False


async def begin(
    value: str,
    log: Log,
    *,
    now_ms: Callable[[], Awaitable[int]],
    param: str,
    heard: Callable[[Position], bool] = _unheard,
) -> Begin:
    """Where ``value`` points. Cursors are exclusive, times inclusive and by ``now_ms``, the clock of the log.

    A cursor of what this server has ``heard`` needs no look at the log. If
    the log has lost that since, who comes now is told of it as those are who stayed.

    Raises :class:`InvalidCursor` for garbage and for what lies above the head, BadRequest for a time to come.
    """
    found = _CURSOR.fullmatch(value)
    if found is not None:
        n = None if found[3] is None else int(found[3])
        position = Position(int(found[1]), int(found[2]), n or 0)
        if heard(position):
            return Begin(position, None)
        return await _at_cursor(_Cursor(value, position.ms, position.seq, n), log, now_ms, param)
    return await _at_time(value, log, param, await now_ms())


async def _at_cursor(cursor: _Cursor, log: Log, now_ms: Callable[[], Awaitable[int]], param: str) -> Begin:
    text, ms, seq, n = cursor
    if (ms, seq) == (0, 0):
        return await _from_the_start(log)
    located = await log.locate(ms, seq)
    if located.found is not None and n in (None, located.found.position.n):
        return Begin(located.found.position, None)
    if not located.trimmed(Position(ms, seq, n or 0)):
        located = await _looked_for(ms, seq, log, await now_ms())
    if (ms, seq) > located.head[:2] or ms < EPOCH_MS:
        message = "this cursor is no place on the log: it is from another server, or made up"
        raise InvalidCursor(message, param=param)
    if located.resumed is not None:
        return Begin(located.resumed, Gap(text, located.resumed, "rolled_back", None))
    if located.floor is not None and (ms, seq) < located.floor[:2] and located.floor.n > 1:
        return _below_floor(text, n if located.survivor is None else None, located.floor)
    position = located.before or START
    return Begin(position, Gap(text, position, "unknown_position", None))


async def _looked_for(ms: int, seq: int, log: Log, now_ms: int) -> Located:
    """Once this feed has looked whether the log is what it was; others have a moment to say that they heard more."""
    await log.doubt()
    located = await log.locate(ms, seq)
    ends = time.monotonic() + OTHERS_SECONDS
    while (ms, seq) > located.head[:2] and ms < now_ms + BELIEVED_MS and time.monotonic() < ends:
        await asyncio.sleep(LOOK_SECONDS)
        located = await log.locate(ms, seq)
    return located


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


async def _at_time(value: str, log: Log, param: str, now_ms: int) -> Begin:
    """A time is still to come if it is so by the clock and by the log, whose clock may have been set back since."""
    ms = _time_ms(value, now_ms, param)
    located = await log.locate(ms, 0)
    if ms > max(now_ms, located.head.ms):
        raise BadRequest("this time is still to come", param=param)
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
