"""Parsers for replies of Redis: positions on the log, and INFO."""

from collections.abc import Sequence
from typing import Any

from stream_server.events.position import LOG_START, Position


def make_position(entry_id: bytes, n: bytes) -> Position:
    """Return the position of a log entry from its id ``<ms>-<seq>`` and number. Raises ValueError for other text."""
    ms, _, seq = entry_id.partition(b"-")
    return Position(int(ms), int(seq), int(n))


def newest_position(rows: Sequence[Any]) -> Position:
    """Return the position of the entry that `lanes.READ_NEWEST_ENTRY` read, `LOG_START` for an empty log."""
    return make_position(rows[0][0], rows[0][1][1]) if rows else LOG_START


def parse_reply_position(reply: bytes) -> Position | None:
    """Return the position ``<ms>-<seq> <n>`` that begins a write's reply, or None if the write added no log entry."""
    entry_id, n, *_ = *reply.split(b" "), b""
    ms, _, seq = entry_id.partition(b"-")
    return Position(int(ms), int(seq), int(n)) if seq and n.isdigit() else None


def parse_cursor(cursor: bytes) -> Position:
    """Return the position of a cursor ``<ms>-<seq>.<n>``. Raises ValueError for any other text."""
    entry_id, _, n = cursor.partition(b".")
    return make_position(entry_id, n)


def parse_info(info: bytes) -> dict[str, str]:
    """Return the ``name:value`` lines of a reply to INFO as a dict. Headings and empty lines are ignored."""
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}
