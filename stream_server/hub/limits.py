"""The limits of a hub, and its counters."""

from collections import Counter
from dataclasses import dataclass, field

MAX_CONCURRENT_PREVIEWS = 2
"""Most previews, counts and searches at the same time. Each one takes a slice of every iteration of the event loop."""


@dataclass(frozen=True, slots=True)
class HubLimits:
    """The limits of one hub, for each of its clients and for its ring (the newest entries in memory).

    The defaults are no settings: ``ring_bytes`` is what an operator with little memory changes, ten minutes are longer
    than a reconnect, and a minute is longer than what a machine that is merely busy needs to come nearer.

    Attributes:
        buffer_bytes: Most bytes that wait in this process for one client, live or catching up. Bytes in the kernel do
            not count. A larger single message is still written to a live client that has nothing unsent, and to a
            client that catches up if at most half of its buffer is used. One `gap`, one `warning` and the `goodbye`,
            each a few hundred bytes, may come on top of it.
        heartbeat_seconds: Time between two heartbeats of a stream.
        write_timeout_seconds: The server drops a client that takes or acknowledges no byte for this long.
        goodbye_seconds: Time for a client to take the `goodbye` before its connection is dropped.
        ring_bytes: Most bytes of entries in the ring.
        send_buffer_bytes: Size of the kernel's send buffer for a stream; 0 leaves it as the system makes it.
        ring_seconds: Greatest age of an entry in the ring.
        far_behind_entries: A client that catches up is far behind if it is more than this many entries behind the head.
        slow_window_seconds: A client that is far behind and keeps falling back for this long is disconnected.
    """

    buffer_bytes: int
    heartbeat_seconds: float
    write_timeout_seconds: float
    goodbye_seconds: float
    ring_bytes: int
    send_buffer_bytes: int = 0
    ring_seconds: float = 600.0
    far_behind_entries: int = 100_000
    slow_window_seconds: float = 60.0

    @property
    def warning_bytes(self) -> int:
        """Unsent bytes of a live client above which the server sends it a `falling_behind` warning."""
        return int(self.buffer_bytes * 0.6)

    @property
    def catchup_write_bytes(self) -> int:
        """Most bytes of one write to a client that catches up, unless a single message is larger.

        Its progress is known in these steps, so they are small.
        """
        return min(16_384, self.buffer_bytes // 2)


@dataclass(slots=True)
class HubCounters:
    """Counters since the start of the process, for the metrics.

    Attributes:
        malformed: Published entries that could not be decoded.
        slow_demotions: Times that a live client had no room for a batch and went back to catching up.
        filter_failures: Times that a filter raised while an entry was delivered to a live group.
        ended_streams: Number of ended streams by outcome. The outcome is the code of the `goodbye`, `left` (the client
            closed the connection), `aborted` (the client took or acknowledged no byte in time, or did not take the
            `goodbye` in time), or `failed` (an unexpected exception of the server).
    """

    published: int = 0
    malformed: int = 0
    slow_demotions: int = 0
    filter_failures: int = 0
    ended_streams: Counter[str] = field(default_factory=Counter)
