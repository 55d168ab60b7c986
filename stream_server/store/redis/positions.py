"""Log positions as Redis replies contain them."""

from stream_server.events.position import Position


def make_position(entry_id: bytes, n: bytes) -> Position:
    """Return the position of an entry from its stream id ``<ms>-<seq>`` and its number. Raises ValueError."""
    ms, _, seq = entry_id.partition(b"-")
    return Position(int(ms), int(seq), int(n))


def parse_reply_position(reply: bytes) -> Position | None:
    """Return the position in a write's reply ``<ms>-<seq> <n>``. Ignores words after it.

    Return None if the write added no entry to the log.
    """
    entry_id, n, *_ = *reply.split(b" "), b""
    return make_position(entry_id, n) if n.isdigit() and b"-" in entry_id else None


def parse_cursor(cursor: bytes) -> Position:
    """Return the position of a cursor ``<ms>-<seq>.<n>``. Raises ValueError for any other text."""
    entry_id, _, n = cursor.partition(b".")
    return make_position(entry_id, n)
