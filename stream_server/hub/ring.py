"""The recent entries of the log, so that a client that was away for a moment costs Redis nothing."""

from collections import deque
from collections.abc import Callable

from stream_server.events import Entry, MalformedEntry, Position


class Ring:
    """Contiguous entries up to the head, bounded by ``max_bytes`` and ``max_age_ms``.

    ``floor`` is the position after which everything is here. ``deleted`` holds the ids of statuses whose
    delete is here: a post in the ring that is named in it must not be replayed.
    """

    def __init__(self, floor: Position, *, max_bytes: int, max_age_ms: float, now_ms: Callable[[], int]) -> None:
        self.floor = floor
        self.bytes = 0
        self.deleted: set[str] = set()
        self._entries: deque[Entry] = deque()
        self._max_bytes = max_bytes
        self._max_age_ms = max_age_ms
        self._now_ms = now_ms

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entry: Entry) -> None:
        """Add the next entry of the log and let go of the oldest that do not fit any more."""
        self._entries.append(entry)
        self.bytes += entry.size
        if entry.kind == "delete":
            self._note(entry)
        self._trim()

    def after(self, position: Position, *, most: int, most_bytes: int) -> list[Entry] | None:
        """The entries that follow ``position``, at most so many; None if the ring does not reach back to it."""
        if position.n < self.floor.n:
            return None
        page: list[Entry] = []
        weight = 0
        for index in range(position.n - self.floor.n, len(self._entries)):
            entry = self._entries[index]  # from the nearer end, 64 at a step; islice would walk from the oldest
            weight += entry.size
            if page and (len(page) >= most or weight > most_bytes):
                break
            page.append(entry)
        return page

    def holds(self, position: Position) -> bool:
        """Whether the entry at ``position`` is here."""
        index = position.n - self.floor.n - 1
        return 0 <= index < len(self._entries) and self._entries[index].position == position

    def clear(self, floor: Position) -> None:
        """Forget everything: the log goes on from ``floor`` with other entries."""
        self._entries.clear()
        self.deleted.clear()
        self.bytes = 0
        self.floor = floor

    def _note(self, entry: Entry) -> None:
        try:
            status_id = entry.event.status_id
        except MalformedEntry:
            return
        if status_id is not None:
            self.deleted.add(status_id)

    def _trim(self) -> None:
        oldest_ms = self._now_ms() - self._max_age_ms
        entries = self._entries
        while entries and (self.bytes > self._max_bytes or entries[0].position.ms < oldest_ms):
            self._drop(entries.popleft())

    def _drop(self, entry: Entry) -> None:
        self.bytes -= entry.size
        self.floor = entry.position
        if entry.kind == "delete":
            try:
                self.deleted.discard(entry.event.status_id or "")
            except MalformedEntry:
                return
