"""Counts the bytes that all connections of a process hold: heads that are not whole, and requests that wait.

The connections hold :data:`MAX_HELD_BYTES` together. Above that, those that hold the most are closed first.
"""

from typing import Protocol

from stream_server.monitoring.limit_hits import LimitHits
from stream_server.web.limits.connections import Refusal

MAX_HEAD_BYTES = 131_072
"""Longest request head in bytes: the longest request line and the longest header field, with as much again."""

MAX_HELD_BYTES = 16 * 2**20
"""Most bytes of heads that are not whole, or wait behind a running request, in one process."""

HELD_SHARE_AFTER_EVICTION = 0.875
"""Share of :data:`MAX_HELD_BYTES` down to which connections are closed. So a flood does not sort them each time."""

HEAD_TOO_LARGE = Refusal(413, "Content Too Large", "too_large", "the request line and headers are too long")
NO_HTTP = Refusal(400, "Bad Request", "malformed_body", "the request is not valid HTTP")
NO_ROOM_FOR_HEAD = Refusal(503, "Service Unavailable", "unavailable", "too many unfinished requests")


class Holder(Protocol):
    """A connection that keeps the bytes of an unfinished request head in memory."""

    def refuse(self, refusal: Refusal) -> None:
        """Answer with ``refusal`` if no other answer is on its way, and close the connection."""


class HeldHeads:
    """Counts the bytes that the connections of a process hold.

    Attributes:
        total: The number of these bytes.
    """

    def __init__(self, hits: LimitHits) -> None:
        """``hits`` counts the connections that are closed because they hold the most."""
        self._hits = hits
        self._sizes: dict[Holder, int] = {}
        self.total = 0

    def note(self, connection: Holder, size: int) -> None:
        """Note that ``connection`` holds ``size`` bytes now. Close the connections that hold the most if need be."""
        self.total += size - self._sizes.pop(connection, 0)
        if size:
            self._sizes[connection] = size
            if self.total > MAX_HELD_BYTES:
                self._make_room()

    def _make_room(self) -> None:
        for connection in sorted(self._sizes, key=self._sizes.__getitem__, reverse=True):
            if self.total <= MAX_HELD_BYTES * HELD_SHARE_AFTER_EVICTION:
                return
            self._hits.add("unfinished_heads")
            connection.refuse(NO_ROOM_FOR_HEAD)
