"""The control messages of a stream. Each carries a cursor, so an idle client can resume at the exact position too.

`web` builds the framings, which encode messages as bytes, and the hub only calls them. `SharedHistory` has the bytes
that all clients of a group have got, to which compression refers.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from stream_server.events.entry import EncodeEntry, Entry
from stream_server.events.one_line import encode_json
from stream_server.events.position import Position, format_iso_time
from stream_server.hub.disconnect import DisconnectReason

ROLLED_BACK = "rolled_back"
"""Reason of a gap that Redis caused: it lost the end of the log."""

TRIMMED = "trimmed"
"""Reason of a gap of entries that were removed from the beginning of the log."""

NOTHING_LOST = ""
"""Stands for the reason of a gap where there is none."""


RULES_FORGOTTEN = "rules_forgotten"
"""Reason of a gap up to the position from which on all saved rules of the user are known."""


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
        reason: ``rolled_back``, ``trimmed``, ``unknown_position`` or ``rules_forgotten``.
        missed_count: Number of missing entries, None if unknown.
    """

    start: str | None
    end: Position
    reason: str
    missed_count: int | None


class StreamNotice(NamedTuple):
    """A message for one stream: ``effective`` (its saved rules changed), ``warning``, or ``count`` of a summary.

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
    position: Position,
    now_ms: int,
    connection_id: str,
    limits: str,
    server: str,
    retry_ms: int | None = None,
    heartbeat_seconds: float = 15,
) -> ControlMessage:
    """Return the first message of a stream. The subscription is in force from ``position`` on.

    ``limits`` is a JSON object. No other text needs an escape in JSON. ``heartbeat_seconds`` is the time between two
    heartbeats.
    """
    cursor = f"{position.ms}-{position.seq}.{position.n}"
    data = (
        f'{{"kind":"hello","cursor":"{cursor}","at":"{format_iso_time(now_ms)}","connection":"{connection_id}",'
        f'"limits":{limits},"heartbeat_seconds":{heartbeat_seconds:g},"server":"{server}"}}'
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


WrapAfter: TypeAlias = Callable[[bytes, bytes], bytes]
"""Wraps bytes (second argument) for clients that have got the bytes in the first argument directly before."""

MIN_SHARING_CLIENTS = 8
"""Fewest clients of a group with a history. A history costs one compression for each group and flush, and fewer clients
save less than that. Groups without a history share single frames instead, see `Batch.write_slice`."""

MAX_HISTORY_BYTES = 4096
"""Longest history of a group, about six posts. Twice as much makes an event one byte in twenty shorter."""


class SharedHistory:
    """The bytes that the clients of one group have got since it last changed.

    Each client that joins has got other bytes before. Therefore the history begins anew when clients have joined or
    left, which ``version`` shows (`ClientGroup.version`), and when one client has got bytes of its own (`forget`).
    """

    __slots__ = ("_tail", "_version", "_wrap_after")

    def __init__(self, wrap_after: WrapAfter) -> None:
        self._wrap_after = wrap_after
        self._tail = b""
        self._version = -1

    def wrap(self, data: bytes, version: int) -> bytes:
        """Wrap ``data``, the next bytes for all clients that were in the group at ``version``."""
        earlier = self._tail if version == self._version else b""
        wrapped = self._wrap_after(earlier, data)
        self._tail = (earlier + data)[-MAX_HISTORY_BYTES:]
        self._version = version
        return wrapped

    def forget(self) -> None:
        """Empty the history, because one client has got bytes that the other clients of the group have not."""
        self._tail = b""


EncodeControl: TypeAlias = Callable[[ControlMessage], bytes]
"""A function that encodes one control message. It returns ``b""`` if the protocol has no such message."""

WrapBytes: TypeAlias = Callable[[bytes], bytes]
"""A function that wraps one joined write for the socket: it may compress, and makes a chunk for HTTP/1.1.

The data are never empty. The function must keep nothing of them: clients that join later get its results too.
"""

IDENTITY = "identity"
"""The content coding of bytes that are not compressed (RFC 9110 §12.5.3)."""


class Framing(NamedTuple):
    """One output format of a stream, for example SSE in HTTP chunks. Clients with equal framings can share every byte.

    ``encode_entry`` and ``encode_control`` encode one message. ``wrap`` wraps the joined bytes of several messages.
    ``content_coding`` names the compression that ``wrap`` contains. ``wrap_after``, if there is one, compresses better,
    but only for clients that have got equal bytes before: see `SharedHistory`. With ``summary_ms``, a stream has a
    message `count` for each period of this length in ms, in the place of its events (`window`).
    """

    name: str
    encode_entry: EncodeEntry
    encode_control: EncodeControl
    wrap: WrapBytes
    content_coding: str = IDENTITY
    wrap_after: WrapAfter | None = None
    summary_ms: int = 0
