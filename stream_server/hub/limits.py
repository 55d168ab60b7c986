"""The bounds of a hub, and what it has counted."""

from collections import Counter
from dataclasses import dataclass, field

MAX_CONCURRENT_PREVIEWS = 2
"""So many previews of rules run at once, the others wait: each takes a slice of every turn of the loop."""


SLOW_WARNING_SHARE = 0.6
"""A live client with so much of its bound unsent is told that it falls behind."""


CATCHUP_WRITE_BYTES = 16_384
"""How far a client has come is known in steps of this: the less, the sooner it is seen that a slow one gains."""


@dataclass(frozen=True, slots=True)
class HubLimits:
    """Bounds of a hub.

    ``buffer_bytes`` is what a client may have unsent here, live or not; the kernel's buffer is not in it. Nobody is
    written to beyond it, but for one thing: a single message larger than it (or than half of it, for who catches up)
    is written whole behind what is unsent then, which is nothing (at most half). Beside it there may be one ``gap``,
    one ``warning`` and the ``goodbye``, a few hundred bytes each.

    ``far_behind_entries`` is how far from the head is far, ``slow_window_seconds`` the window in which a client that is far behind
    has to gain something.
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
        """So much unsent is nothing to speak of."""
        return int(self.buffer_bytes * SLOW_WARNING_SHARE)

    @property
    def catchup_write_bytes(self) -> int:
        """Who catches up is written so much at a time, unless one message is more, once half of the bound is free."""
        return min(CATCHUP_WRITE_BYTES, self.buffer_bytes // 2)


@dataclass(slots=True)
class HubCounters:
    """What happened since the start; the metrics read them.

    ``ended_streams`` counts streams by how they did: the code of their ``goodbye``; ``left`` without one; ``aborted`` because
    no byte was taken or acknowledged for too long, or no goodbye; ``filter_failures`` through a fault of our own.
    """

    published: int = 0
    malformed: int = 0
    slow_demotions: int = 0
    filter_failures: int = 0
    ended_streams: Counter[str] = field(default_factory=Counter)
