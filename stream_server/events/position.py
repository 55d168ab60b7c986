"""TODO."""

import re
from datetime import UTC, datetime
from typing import NamedTuple

EPOCH_MS = 1_704_067_200_000
"""2024-01-01T00:00:00Z: ids count from here, so that they fit the 53 bits of a double until 2093."""

POSITION_PATTERN = re.compile(rb"(\d{1,15})-(\d{1,6})\.(\d{1,15})")
"""TODO."""


class Position(NamedTuple):
    """A place on the log: the entry's (ms, seq) and its contiguous number n, in log order."""

    ms: int
    seq: int
    n: int

    @property
    def entry_id(self) -> str:
        """The Redis stream id, ``<ms>-<seq>``."""
        return f"{self.ms}-{self.seq}"

    @property
    def cursor(self) -> str:
        """What clients hold, opaque to them: ``<ms>-<seq>.<n>``."""
        return f"{self.ms}-{self.seq}.{self.n}"

    @property
    def status_number(self) -> int:
        """The id of a status made at this place, as a number: ids order as the log does."""
        return (self.ms - EPOCH_MS) * 4096 + self.seq

    def previous(self) -> "Position":
        """The place just below this one: from there, this entry is the next."""
        if self.n == 1:
            return LOG_START
        ms, seq = (self.ms, self.seq - 1) if self.seq else (self.ms - 1, 4095)
        return Position(ms, seq, self.n - 1)


LOG_START = Position(0, 0, 0)
"""Before the first entry of an empty log."""


def created_ms(number: int) -> int:
    """When what has this id was made, in ms since 1970: ids are times."""
    return EPOCH_MS + (number >> 12)


def format_iso_time(ms: int) -> str:
    """``ms`` since 1970 as ISO 8601 in UTC with milliseconds, the one form of time on the wire."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
