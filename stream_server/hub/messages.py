"""The messages that are no events: each carries a cursor, so that an idle client resumes exactly too."""

from typing import NamedTuple

import msgspec

from stream_server.events.position import Position, format_iso_time
from stream_server.hub.disconnect import DisconnectReason

_encode_json = msgspec.json.encode


ROLLED_BACK = "rolled_back"
"""The reason of a gap that Redis made: the log lost its end."""


class ControlMessage(NamedTuple):
    """One control message, ready for any framing; ``retry_ms`` goes out as SSE's ``retry:``."""

    kind: str
    cursor: str
    data: bytes
    retry_ms: int | None = None


class Gap(NamedTuple):
    """What cannot be delivered: after ``start`` up to and with ``end``; ``missed_count`` is None if unknown."""

    start: str | None
    end: Position
    reason: str
    missed_count: int | None


class StreamNotice(NamedTuple):
    """What is told of a stream's own filters at a place: ``effective`` or ``warning``, with its members."""

    kind: str
    position: Position
    members: dict[str, object]


def _build_message(kind: str, position: Position, now_ms: int, **members: object) -> ControlMessage:
    body = {"kind": kind, "cursor": position.cursor, "at": format_iso_time(now_ms), **members}
    return ControlMessage(kind, position.cursor, _encode_json(body))


def hello_message(
    position: Position, now_ms: int, connection_id: str, limits: dict[str, object], server: str
) -> ControlMessage:
    """The first message: the subscription is in force from ``position`` on."""
    return _build_message("hello", position, now_ms, connection=connection_id, limits=limits, server=server)


def heartbeat_message(position: Position, now_ms: int, lag_ms: int) -> ControlMessage:
    """A sign of life that moves the cursor; ``lag_ms`` is how far this server is known to be behind the log."""
    return _build_message("heartbeat", position, now_ms, lag_ms=lag_ms)


def gap_message(gap: Gap, now_ms: int) -> ControlMessage:
    """What was lost is told, with its number where it is known; the stream goes on after it."""
    members = {"from": gap.start, "to": gap.end.cursor, "reason": gap.reason, "count": gap.missed_count}
    return _build_message("gap", gap.end, now_ms, **members)


def notice_message(notice: Gap | StreamNotice, now_ms: int) -> ControlMessage:
    """What has changed in a stream's filters, or was lost where nobody here heard it, from its place on."""
    if isinstance(notice, Gap):
        return gap_message(notice, now_ms)
    return _build_message(notice.kind, notice.position, now_ms, **notice.members)


def goodbye_message(position: Position, now_ms: int, disconnect_reason: DisconnectReason) -> ControlMessage:
    """The last message: why, when to come back, and from where."""
    made = _build_message(
        "goodbye",
        position,
        now_ms,
        code=disconnect_reason.code,
        reason=disconnect_reason.text,
        retry_after=disconnect_reason.retry_after_seconds,
    )
    return made._replace(
        retry_ms=None
        if disconnect_reason.retry_after_seconds is None
        else round(disconnect_reason.retry_after_seconds * 1000)
    )
