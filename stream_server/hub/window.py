"""The window of a summary stream: what it counts until its period ends.

A stream with ``summary`` gets one message `count` for each period instead of the events. Its cursors are the bounds of
what it counts. So a client that resumes after a `count` misses nothing and gets nothing twice, and each other message
of such a stream has the cursor of the last `count` before it, at which a client may resume too.

Periods are those of UTC. An event counts in the period of its own time, which Redis gave it. The clock of this server
decides only when the message of a live window is sent, at the latest after each of its own periods. So a clock that is
wrong divides a period among several messages, and neither delays the counts nor changes their periods.
"""

from stream_server.events.position import Position, format_iso_time
from stream_server.hub.messages import StreamNotice
from stream_server.hub.tally import Tally

GRACE_MS = 1000
"""Time in ms after the end of a period in which its last events may arrive. Later ones come in a message of their own.

Also the most by which the clocks of Redis and of this server may differ, so that each period has one message.
"""


class Window(Tally):
    """The events that are counted since the last `count` of a stream, or of all live clients of a group.

    Attributes:
        start: Position after which it counts.
        last: Position of the last event that it has counted, or ``start``.
        end_ms: End of its period in ms since 1970. 0 until an event or the clock tells which period it is.
        due_ms: Time by the clock of this server at which it ends although no later event has come, in ms since 1970.
    """

    __slots__ = ("_period_ms", "due_ms", "end_ms", "last", "start")

    def __init__(self, period_ms: int, start: Position) -> None:
        super().__init__()
        self._period_ms = period_ms
        self.start = self.last = start
        self.end_ms = self.due_ms = 0

    def begin_period(self, ms: int) -> None:
        """Let it count for the period in which the time ``ms`` is."""
        self.end_ms = ms - ms % self._period_ms + self._period_ms
        self.due_ms = self.end_ms + GRACE_MS

    def is_due(self, now_ms: int) -> bool:
        """Return whether its time is over. It also is if the clock was set back: then it would last too long."""
        return not now_ms < self.due_ms <= now_ms + self._period_ms + 2 * GRACE_MS

    def put_off(self, now_ms: int) -> None:
        """Let it last to the end of the server's period if its own is over, or far ahead.

        Then its first event came late, or a clock is wrong.
        """
        if self.is_due(now_ms):
            self.due_ms = now_ms - now_ms % self._period_ms + self._period_ms + GRACE_MS

    def count_event(self, position: Position, matched_json: bytes | None) -> None:
        """Count an event. The first one tells the period. Close the window before an event of a later one."""
        if not self.count:
            self.begin_period(position.ms)
        self.add(matched_json)
        self.last = position

    def close(self, to: Position) -> StreamNotice:
        """Return the message `count` with all that was counted up to ``to``, and count anew after it."""
        members = {
            "from": self.start.cursor, "to": to.cursor, "began": format_iso_time(self.end_ms - self._period_ms),
            "ended": format_iso_time(self.end_ms), **self.members(),
        }  # fmt: skip
        self.count = 0
        self.of_rules.clear()
        self.move(to)
        return StreamNotice("count", to, members)

    def move(self, to: Position) -> None:
        """Let a window that has counted nothing begin at ``to``: nothing before counts, or it cannot be delivered."""
        self.start = self.last = to

    def copy(self) -> "Window":
        """Return a window that has counted the same."""
        other = Window(self._period_ms, self.start)
        other.last, other.end_ms, other.due_ms, other.count = self.last, self.end_ms, self.due_ms, self.count
        other.of_rules.update(self.of_rules)
        return other
