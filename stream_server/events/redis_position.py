"""Places on the log as Redis writes them."""

from stream_server.events.position import Position


def make_position(entry_id: bytes, n: bytes) -> Position:
    """The place of an entry: its stream id ``<ms>-<seq>`` and its number."""
    ms, _, seq = entry_id.partition(b"-")
    return Position(int(ms), int(seq), int(n))


def parse_reply_position(reply: bytes) -> Position | None:
    """The place in a write's answer ``<ms>-<seq> <n>``, words after it aside; None where nothing was put on the log."""
    entry_id, n, *_ = *reply.split(b" "), b""
    return make_position(entry_id, n) if n.isdigit() and b"-" in entry_id else None


def parse_cursor(cursor: bytes) -> Position:
    """The place that a cursor ``<ms>-<seq>.<n>`` names; raises ValueError where it is none."""
    entry_id, _, n = cursor.partition(b".")
    return make_position(entry_id, n)
