"""The bounds of a hub, and its counters."""

from collections import Counter
from dataclasses import dataclass, field

MAX_CONCURRENT_PREVIEWS = 2
"""Most previews of rules that run at the same time. Each one takes a slice of every iteration of the event loop."""


SLOW_WARNING_SHARE = 0.6
"""Used share of a live client's buffer above which the server sends it a `falling_behind` warning."""


CATCHUP_WRITE_BYTES = 16_384
"""Bytes of one write to a client that catches up.

Its progress is known in these steps, so small steps show it sooner.
"""


@dataclass(frozen=True, slots=True)
class HubLimits:
    """The bounds of a hub.

    Attributes:
        buffer_bytes: Most unsent bytes of one client in this process, live or catching up. The kernel's buffer is not
            included. A single larger message is still written to a live client that has nothing unsent, and to a
            client that catches up if at most half of its buffer is used. One `gap`, one `warning` and the `goodbye`,
            each a few hundred bytes, may be added to it.
        heartbeat_seconds: Time between two heartbeats of a stream.
        write_timeout_seconds: A client that takes or acknowledges no byte for this long is dropped.
        goodbye_seconds: Time for a client to take the `goodbye` before its connection is dropped.
        ring_bytes: Most bytes of entries in the ring.
        ring_seconds: Greatest age of an entry in the ring.
        far_behind_entries: Distance to the head, in entries, above which a client that catches up may be too slow.
        slow_window_seconds: A client that is far behind is ended if it gains nothing on the head for this long.
    """

    buffer_bytes: int
    heartbeat_seconds: float
    write_timeout_seconds: float
    goodbye_seconds: float
    ring_bytes: int
    ring_seconds: float
    far_behind_entries: int = 100_000
    slow_window_seconds: float = 60.0

    @property
    def warning_bytes(self) -> int:
        """Unsent bytes of a live client above which it is warned."""
        return int(self.buffer_bytes * SLOW_WARNING_SHARE)

    @property
    def catchup_write_bytes(self) -> int:
        """Most bytes of one write to a client that catches up, unless a single message is larger."""
        return min(CATCHUP_WRITE_BYTES, self.buffer_bytes // 2)


@dataclass(slots=True)
class HubCounters:
    """Counters since the start of the process, for the metrics.

    Attributes:
        published: Entries that were published.
        malformed: Published entries that could not be decoded.
        slow_demotions: Times that a live client had no room for a batch and went back to catching up.
        filter_failures: Times that a filter raised while an entry was delivered to a live group.
        ended_streams: Ended streams by outcome. The outcome is the code of the `goodbye`, or `left` (the client closed
            the connection), `aborted` (it took or acknowledged no byte, or not the goodbye, in time), or `failed` (an
            unexpected exception of the server).
    """

    published: int = 0
    malformed: int = 0
    slow_demotions: int = 0
    filter_failures: int = 0
    ended_streams: Counter[str] = field(default_factory=Counter)
