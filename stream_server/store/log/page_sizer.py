"""How many entries of the log are read at once: Redis counts them, and what they weigh is only known afterwards."""

from collections.abc import Iterable, Sequence
from typing import Any

PAGE_BYTES = 4 << 20
"""About so many bytes of entries are read at once, and at least one entry."""

INITIAL_PAGE_ENTRIES = 16
"""So many are read at once while nothing was read before."""


class PageSizer:
    """Goes by the weight of what was read last: 256 posts are 0.25 MB, and 300 MB if each is as large as may be.

    It is a guess: of the first heavy ones behind light ones as many come as of light ones. Behind heavy ones it takes
    light ones for half as heavy at each look, since what is heavy seldom comes alone.
    """

    def __init__(self) -> None:
        self._entry_bytes = 0.0

    def page_entries(self, max_entries: int) -> int:
        """So many entries, of at most ``max_entries``, are about a page."""
        return max(
            1, min(max_entries, int(PAGE_BYTES / self._entry_bytes) if self._entry_bytes else INITIAL_PAGE_ENTRIES)
        )

    def record_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """These were read now, as Redis gives them; none tell nothing."""
        if rows:
            self.record_entry_bytes(sum(_total_bytes(fields) for _, fields in rows) / len(rows))

    def record_entry_bytes(self, entry_bytes: float) -> None:
        """Entries were found to weigh so much, one with another."""
        self._entry_bytes = max(entry_bytes, self._entry_bytes / 2)


def _total_bytes(fields: Iterable[bytes]) -> int:
    return sum(map(len, fields))
