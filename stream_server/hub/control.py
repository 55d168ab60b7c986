"""The messages that are no events: each carries a cursor, so that an idle client resumes exactly too."""

from typing import NamedTuple

import msgspec

from stream_server.events import Position, iso
from stream_server.hub.closing import Closing

_encode = msgspec.json.encode


ROLLED_BACK = "rolled_back"
"""The reason of a gap that Redis made: the log lost its end."""


class Control(NamedTuple):
    """One control message, ready for any framing; ``retry_ms`` goes out as SSE's ``retry:``."""

    kind: str
    cursor: str
    data: bytes
    retry_ms: int | None = None


class Gap(NamedTuple):
    """What cannot be delivered: after ``start`` up to and with ``end``; ``missed`` is None if unknown."""

    start: str | None
    end: Position
    reason: str
    missed: int | None


class Notice(NamedTuple):
    """What is told of a stream's own filters at a place: ``effective`` or ``warning``, with its members."""

    kind: str
    position: Position
    members: dict[str, object]


def _control(kind: str, position: Position, now_ms: int, **members: object) -> Control:
    body = {"kind": kind, "cursor": position.cursor, "at": iso(now_ms), **members}
    return Control(kind, position.cursor, _encode(body))


def hello(position: Position, now_ms: int, connection: str, limits: dict[str, object], server: str) -> Control:
    """The first message: the subscription is in force from ``position`` on."""
    return _control("hello", position, now_ms, connection=connection, limits=limits, server=server)


def heartbeat(position: Position, now_ms: int, lag_ms: int) -> Control:
    """A sign of life that moves the cursor; ``lag_ms`` is how far this server is known to be behind the log."""
    return _control("heartbeat", position, now_ms, lag_ms=lag_ms)


def gap(lost: Gap, now_ms: int) -> Control:
    """What was lost is told, with its number where it is known; the stream goes on after it."""
    members = {"from": lost.start, "to": lost.end.cursor, "reason": lost.reason, "count": lost.missed}
    return _control("gap", lost.end, now_ms, **members)


def notice(told: Gap | Notice, now_ms: int) -> Control:
    """What has changed in a stream's filters, or was lost where nobody here heard it, from its place on."""
    if isinstance(told, Gap):
        return gap(told, now_ms)
    return _control(told.kind, told.position, now_ms, **told.members)


def goodbye(position: Position, now_ms: int, closing: Closing) -> Control:
    """The last message: why, when to come back, and from where."""
    made = _control(
        "goodbye", position, now_ms, code=closing.code, reason=closing.reason, retry_after=closing.retry_after
    )
    return made._replace(retry_ms=None if closing.retry_after is None else round(closing.retry_after * 1000))
