"""Fill the ring of a server that has just started, so that the clients of the server before it find their entries.

Without it, ten thousand clients that return to a new process would all read the log, each its own pages of it.
"""

import time
from contextlib import suppress
from typing import Protocol

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.catchup.ring import Ring

MAX_PAGE_ENTRIES = 512
"""Most entries of one read, as in the feed."""

MAX_FILL_SECONDS = 2.0
"""Longest time in seconds of filling the ring, because the server starts meanwhile and accepts no clients."""


class LogTail(Protocol):
    """Reads the log from its end."""

    async def read_back(self, last: Position, max_entries: int) -> list[Entry]:
        """Return up to ``max_entries`` entries in log order, up to the one at ``last``; none if the log lacks that."""


class RingFiller:
    """Adds older entries of the log to the ring after a start, the newest first, while the feed adds new ones."""

    def __init__(self, log: LogTail, ring: Ring) -> None:
        self._log = log
        self._ring = ring

    async def fill(self) -> None:
        """Add entries until the ring has what its bounds allow. Stop earlier if time runs out or Redis is away."""
        deadline = time.monotonic() + MAX_FILL_SECONDS
        with suppress(Unavailable):
            while await self._add_page() and time.monotonic() < deadline:
                pass

    async def _add_page(self) -> bool:
        """Read a page and add it. Return False if there is nothing more to add.

        The page ends with the entry at the ring's floor, which the log still has. So the log and the ring are one
        history. If the ring was cut or trimmed while Redis was asked, the page does not end there, and filling ends.
        """
        page = await self._log.read_back(self._ring.floor, MAX_PAGE_ENTRIES)
        return len(page) > 1 and self._ring.add_older(page)
