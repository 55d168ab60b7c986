"""A position on the log, and the times that ids contain.

An id is ``(milliseconds since EPOCH_MS) * 4096 + sequence``. The position of an entry has the same milliseconds and
sequence, so ids, times and the log have one order.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple

EPOCH_MS = 1_704_067_200_000
"""2024-01-01T00:00:00Z in milliseconds since 1970.

Ids count from here, so they fit the 53 bits of a double until 2093.
"""

POSITION_PATTERN = re.compile(rb"(\d{1,15})-(\d{1,6})\.(\d{1,15})")
"""A cursor ``<ms>-<seq>.<n>``, with one group for each number."""


class Position(NamedTuple):
    """A position on the log; positions compare in log order.

    Attributes:
        ms: Milliseconds since 1970.
        seq: Sequence number within the millisecond.
        n: Contiguous number of the entry; the first entry of the log has 1.
    """

    ms: int
    seq: int
    n: int

    @property
    def entry_id(self) -> str:
        """The Redis stream id ``<ms>-<seq>``."""
        return f"{self.ms}-{self.seq}"

    @property
    def cursor(self) -> str:
        """The cursor ``<ms>-<seq>.<n>`` that clients store. It is opaque to them."""
        return f"{self.ms}-{self.seq}.{self.n}"

    @property
    def status_number(self) -> int:
        """The id, as a number, of a status created at this position. Ids have the order of the log."""
        return (self.ms - EPOCH_MS) * 4096 + self.seq

    def previous(self) -> "Position":
        """Return the position just before this one. For a reader that starts there, this entry is the next."""
        if self.n == 1:
            return LOG_START
        ms, seq = (self.ms, self.seq - 1) if self.seq else (self.ms - 1, 4095)
        return Position(ms, seq, self.n - 1)


LOG_START = Position(0, 0, 0)
"""The position before the first entry of an empty log."""


def created_ms(number: int) -> int:
    """Return when the object with this id was created, in milliseconds since 1970."""
    return EPOCH_MS + (number >> 12)


def format_iso_time(ms: int) -> str:
    """Return ``ms`` since 1970 as ISO 8601 in UTC with milliseconds, the only form of a time on the wire."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
