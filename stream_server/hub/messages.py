"""The control messages of a stream. Each carries a cursor, so an idle client can resume at the exact position too."""

from typing import NamedTuple

from stream_server.events.entry import Entry
from stream_server.events.one_line import encode_json
from stream_server.events.position import Position, format_iso_time
from stream_server.hub.disconnect import DisconnectReason

ROLLED_BACK = "rolled_back"
"""Reason of a gap that Redis caused: it lost the end of the log."""


class ControlMessage(NamedTuple):
    """One control message, ready for any framing. ``data`` is JSON.

    ``cursor`` is where a client can resume after this message. ``retry_ms`` is SSE's ``retry:`` field, None to omit it.
    """

    kind: str
    cursor: str
    data: bytes
    retry_ms: int | None = None


class Gap(NamedTuple):
    """Entries that cannot be delivered.

    Attributes:
        start: Cursor after which the gap begins, None if unknown. It may be what a client sent, so it is text.
        end: Last position of the gap. The stream continues after it.
        reason: ``rolled_back`` or ``trimmed``.
        missed_count: Number of missing entries, None if unknown.
    """

    start: str | None
    end: Position
    reason: str
    missed_count: int | None


class StreamNotice(NamedTuple):
    """A control message for one stream: ``effective`` (its saved rules changed) or ``warning``.

    ``position`` is the cursor of the message. For ``effective``, the new rules apply to the entries after it.
    ``members`` are the members that the JSON message has besides its kind, cursor and time.
    """

    kind: str
    position: Position
    members: dict[str, object]


def rollback_gap(rollback_entry: Entry) -> Gap:
    """Return the gap that a ``rollback`` entry reports. Raises `MalformedEntry` if the entry cannot be decoded."""
    return Gap(rollback_entry.lost_range()[0].cursor, rollback_entry.position, ROLLED_BACK, None)


def _build_message(kind: str, position: Position, now_ms: int, **members: object) -> ControlMessage:
    cursor = position.cursor
    body = {"kind": kind, "cursor": cursor, "at": format_iso_time(now_ms), **members}
    return ControlMessage(kind, cursor, encode_json(body))


def hello_message(
    position: Position, now_ms: int, connection_id: str, limits: str, server: str, retry_ms: int | None = None
) -> ControlMessage:
    """Return the first message of a stream. The subscription is in force from ``position`` on.

    ``limits`` is a JSON object. No other text needs an escape in JSON.
    """
    cursor = f"{position.ms}-{position.seq}.{position.n}"
    data = (
        f'{{"kind":"hello","cursor":"{cursor}","at":"{format_iso_time(now_ms)}","connection":"{connection_id}",'
        f'"limits":{limits},"server":"{server}"}}'
    )
    return ControlMessage("hello", cursor, data.encode(), retry_ms)


def heartbeat_message(position: Position, now_ms: int, lag_ms: int) -> ControlMessage:
    """Return a heartbeat with the cursor of ``position``. ``lag_ms`` is the known delay behind the log, in ms."""
    return _build_message("heartbeat", position, now_ms, lag_ms=lag_ms)


def gap_message(gap: Gap, now_ms: int) -> ControlMessage:
    """Return the message that reports a gap. Its cursor is the end of the gap."""
    members = {"from": gap.start, "to": gap.end.cursor, "reason": gap.reason, "count": gap.missed_count}
    return _build_message("gap", gap.end, now_ms, **members)


def notice_message(notice: Gap | StreamNotice, now_ms: int) -> ControlMessage:
    """Return the message that reports a gap or a `StreamNotice` (changed saved rules, or a warning)."""
    if isinstance(notice, Gap):
        return gap_message(notice, now_ms)
    return _build_message(notice.kind, notice.position, now_ms, **notice.members)


def goodbye_message(position: Position, now_ms: int, disconnect_reason: DisconnectReason) -> ControlMessage:
    """Return the last message of a stream: why it ends, when to reconnect, and the cursor to resume from."""
    code, text, retry_after = disconnect_reason
    message = _build_message("goodbye", position, now_ms, code=code, reason=text, retry_after=retry_after)
    return message if retry_after is None else message._replace(retry_ms=round(retry_after * 1000))
