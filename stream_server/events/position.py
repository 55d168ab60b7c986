"""A position on the log, the times that ids contain, and times as texts.

An id is ``(milliseconds since EPOCH_MS) * 4096 + sequence``. The position of an entry has the same milliseconds and
sequence, so ids, times and the log have one order.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

EPOCH_MS = 1_704_067_200_000
"""2024-01-01T00:00:00Z in milliseconds since 1970. Ids count from here, so a double holds them exactly until 2093."""

POSITION_PATTERN = re.compile(rb"(\d{1,15})-(\d{1,6})\.(\d{1,15})")
"""A cursor ``<ms>-<seq>.<n>``, with one group for each number."""


class Position(NamedTuple):
    """A position on the log: milliseconds since 1970, sequence number within the millisecond, and entry number.

    Entry numbers are contiguous; the first entry of the log has the number 1. Positions compare in log order.
    """

    ms: int
    seq: int
    n: int

    @property
    def entry_id(self) -> str:
        """The id of the entry in the Redis stream: ``<ms>-<seq>``."""
        return f"{self.ms}-{self.seq}"

    @property
    def cursor(self) -> str:
        """The cursor ``<ms>-<seq>.<n>`` that clients store. It is opaque to them."""
        return f"{self.ms}-{self.seq}.{self.n}"

    @property
    def status_number(self) -> int:
        """The id (as an integer) of the status that is created at this position."""
        return (self.ms - EPOCH_MS) * 4096 + self.seq

    def previous(self) -> "Position":
        """Return the position just before this one. A reader that starts there reads this position's entry first."""
        if self.n == 1:
            return LOG_START
        ms, seq = (self.ms, self.seq - 1) if self.seq else (self.ms - 1, 4095)
        return Position(ms, seq, self.n - 1)


LOG_START = Position(0, 0, 0)
"""The position before the first entry of an empty log."""


def parse_iso_ms(iso: str) -> int:
    """Return the time ``iso`` (ISO 8601) in ms since 1970. Raises ValueError for another text."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


def parse_age_ms(text: str) -> int | None:
    """Return the length in ms of an age such as ``-15m``: seconds, minutes, hours or days. None for another text."""
    age = re.fullmatch(r"-(\d{1,9})([smhd])", text, re.ASCII)
    return None if age is None else int(age[1]) * {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[age[2]]


def created_ms(number: int) -> int:
    """Return the time when the object with the id ``number`` was created, in milliseconds since 1970."""
    return EPOCH_MS + (number >> 12)


def entry_id_of(number: int) -> str:
    """Return the id of the entry in the Redis stream from whose position the id ``number`` was made."""
    return f"{created_ms(number)}-{number & 4095}"


def format_iso_time(ms: int) -> str:
    """Return ``ms`` (milliseconds since 1970) as ISO 8601 in UTC, the format of all times in the native API."""
    return f"{_format_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(1024)
def _format_second(seconds: int) -> str:
    """Return a Unix time (s) in ISO 8601 without its zone. It is cached, because most calls ask for the present one."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
