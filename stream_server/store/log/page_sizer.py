"""Number of log entries for one read. Redis limits a read by entries, and their size is known only afterwards."""

from collections.abc import Sequence
from typing import Any

PAGE_BYTES = 4 << 20
"""Approximate size in bytes of the entries in one read. A read returns at least one entry."""

INITIAL_PAGE_ENTRIES = 16
"""Number of entries in the first read, while their size is unknown."""


class PageSizer:
    """Estimates how many log entries fit in one read of about 4 MiB, from the size of the entries that were read last.

    A fixed number does not suffice: 256 posts are about 0.25 MB, or 300 MB at their maximum size. The first read of
    large entries after small ones is larger than 4 MiB. After large entries, each read lowers the estimated size by at
    most half, because large entries seldom come alone.
    """

    def __init__(self) -> None:
        self._entry_bytes = 0.0

    def page_entries(self, max_entries: int) -> int:
        """Return how many log entries to request in the next read, for about 4 MiB: from 1 to ``max_entries``."""
        fitting = int(PAGE_BYTES / self._entry_bytes) if self._entry_bytes else INITIAL_PAGE_ENTRIES
        return max(1, min(max_entries, fitting))

    def record_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """Record the average size of log rows from Redis, for the next estimate. An empty list changes nothing."""
        if rows:
            self.record_entry_bytes(sum(sum(map(len, fields)) for _, fields in rows) / len(rows))

    def record_entry_bytes(self, entry_bytes: float) -> None:
        """Record the average size of some log entries in bytes, for the next estimate."""
        self._entry_bytes = max(entry_bytes, self._entry_bytes / 2)
