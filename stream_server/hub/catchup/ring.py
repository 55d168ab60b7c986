"""The recent entries of the log in memory, so that clients that return after a short time do not load Redis."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from stream_server.events.content import MalformedEntry
from stream_server.events.entry import Entry
from stream_server.events.position import Position


class Ring:
    """The newest entries of the log in memory, bounded by ``max_bytes`` and ``max_age_ms``.

    Attributes:
        floor: Position after which every entry is in the ring.
        size_bytes: Bytes of all entries.
        cut_count: Number of calls of `cut_after`. After such a call, indexes of the ring's entries are outdated.
        deleted_ids: Ids of statuses and comments that an entry in the ring deletes. A replay must not show them.
        edits: The last `edit` in the ring of each status that has one, by its id. A replay shows this version.
    """

    def __init__(self, floor: Position, *, max_bytes: int, max_age_ms: float, now_ms: Callable[[], int]) -> None:
        self.floor = floor
        self.size_bytes = 0
        self.cut_count = 0
        self.deleted_ids: set[str] = set()
        self.edits: dict[str, Entry] = {}
        self._entries: deque[Entry] = deque()
        self._cuts: deque[tuple[Position, Position]] = deque(maxlen=16)
        self._recently_read: dict[Entry, None] = {}
        self._previously_read: dict[Entry, None] = {}
        self._max_bytes = max_bytes
        self._max_age_ms = max_age_ms
        self._now_ms = now_ms

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def head(self) -> Position:
        """Position of the newest entry, `floor` if the ring is empty."""
        return self._entries[-1].position if self._entries else self.floor

    def append(self, entry: Entry) -> None:
        """Add the next entry of the log. Raises `ValueError` if the entry does not directly follow `head`."""
        entries, position = self._entries, entry.position
        last = entries[-1].position if entries else self.floor
        if position.n != last.n + 1 or position <= last:
            raise ValueError(f"{position.cursor} does not follow {last.cursor}")
        entries.append(entry)
        self._recently_read[entry] = None
        self.size_bytes += entry.size
        if entry.is_removal:
            self.deleted_ids.add(_subject_id(entry))
        elif entry.kind == "edit":
            self.edits[_subject_id(entry)] = entry
        oldest_ms = self._now_ms() - self._max_age_ms
        while entries and (self.size_bytes > self._max_bytes or entries[0].position.ms < oldest_ms):
            self.floor = entries[0].position
            self._forget(entries.popleft())

    def add_older(self, older: Sequence[Entry]) -> bool:
        """Add entries of the log, in log order, of which the last is at `floor`. The oldest of them is the new floor.

        Returns False if not all were added: they exceed a bound, or do not follow each other without a break.
        """
        oldest_ms = self._now_ms() - self._max_age_ms
        for entry, before in pairwise(reversed(older)):
            position, last = entry.position, before.position
            is_joined = position == self.floor and position.n == last.n + 1 and position > last
            if not is_joined or entry.position.ms < oldest_ms or self.size_bytes + entry.size > self._max_bytes:
                return False
            self._entries.appendleft(entry)
            self.size_bytes += entry.size
            if entry.is_removal:
                self.deleted_ids.add(_subject_id(entry))
            elif entry.kind == "edit":
                self.edits.setdefault(_subject_id(entry), entry)
            self.floor = before.position
        return True

    def skip_to(self, number: int) -> None:
        """Expect ``number`` as the number of the next entry, because the log has no entry with the numbers before it.

        Forgets all entries: the ring finds an entry by its number, so its numbers must follow each other without a gap.
        """
        head = self.head
        self.cut_after(head._replace(n=number - 1))

    def covers(self, position: Position) -> bool:
        """Return whether the ring has all entries after ``position``, and no rollback removed ``position`` itself.

        The position may lie between two entries, for example just before the first entry of a trimmed log.
        """
        index = position.n - self.floor.n
        if not 0 <= index <= len(self._entries):
            return False
        below = self._entries[index - 1].position if index else self.floor
        if index == len(self._entries) or self._find_cut(position) is not None:
            return position == below
        return below[:2] <= position[:2] < self._entries[index].position[:2]

    def contains(self, position: Position) -> bool:
        """Return whether the entry at exactly ``position`` is in the ring."""
        index = position.n - self.floor.n - 1
        return 0 <= index < len(self._entries) and self._entries[index].position == position

    def read_after(self, position: Position, *, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return entries after ``position``, within both limits but at least one, if any. Needs `covers(position)`."""
        page: list[Entry] = []
        weight = 0
        for index in range(position.n - self.floor.n, len(self._entries)):
            entry = self._entries[index]  # indexing a deque begins at the nearer end; islice would begin at the oldest
            weight += entry.size
            if page and (len(page) >= max_entries or weight > max_bytes):
                break
            page.append(entry)
            self._recently_read[entry] = None
        return page

    def iter_numbers(self, first_number: int, last_number: int) -> Iterator[Entry]:
        """Yield the entries with these log numbers and mark them as read. Call it only if the ring has them all."""
        for entry in self.peek_numbers(first_number, last_number):
            self.mark_read(entry)
            yield entry

    def peek_numbers(self, first_number: int, last_number: int) -> Iterator[Entry]:
        """Do as `iter_numbers` without marking: for a caller that does not decode the entries."""
        for n in range(first_number, last_number + 1):
            yield self._entries[n - self.floor.n - 1]

    def mark_read(self, entry: Entry) -> None:
        """Record that a client read the entry. The next `drop_unread_caches` then keeps the decoded entry."""
        self._recently_read[entry] = None

    def resume_position_for(self, position: Position) -> Position:
        """Return the position from which a client must read on if a rollback removed the client's ``position``.

        This is the last position that the rollback kept. If the ring does not remember the rollback, it is the newest
        position in the ring with an earlier time and sequence than ``position``.
        """
        older = (known for known in self.positions_newest_first() if known[:2] < position[:2])
        return self._find_cut(position) or next(older, self.floor)

    def positions_newest_first(self) -> Iterator[Position]:
        """Yield the positions of all entries, the newest first."""
        return (entry.position for entry in reversed(self._entries))

    def cut_after(self, position: Position) -> None:
        """Make ``position`` the head: forget the later entries, or all if the ring has no entry at ``position``."""
        last = self.head
        self.cut_count += 1
        if position < last:
            self._cuts.append((position, last))
        while self._entries and self._entries[-1].position != position:
            self._forget(self._entries.pop())
        # An edit that was cut off may have replaced an earlier one.
        self.edits = {_subject_id(entry): entry for entry in self._entries if entry.kind == "edit"}
        if not self._entries:
            self.floor = position

    def drop_unread_caches(self) -> None:
        """Free the decoded forms of entries not read since the last call. They are ten times as large as the JSON."""
        for entry in self._previously_read:
            if entry not in self._recently_read:
                entry.drop_caches()
        self._previously_read, self._recently_read = self._recently_read, {}

    def _find_cut(self, position: Position) -> Position | None:
        """Return the last position that a rollback kept, if the rollback removed ``position``.

        Otherwise return None.
        """
        return next((to for to, last in reversed(self._cuts) if to[:2] < position[:2] <= last[:2]), None)

    def _forget(self, entry: Entry) -> None:
        self.size_bytes -= entry.size
        self._recently_read.pop(entry, None)
        self._previously_read.pop(entry, None)
        if entry.is_removal:
            self.deleted_ids.discard(_subject_id(entry))
        elif entry.kind == "edit" and self.edits.get(_subject_id(entry)) is entry:
            del self.edits[_subject_id(entry)]


def _subject_id(entry: Entry) -> str:
    try:
        return entry.subject_id or ""
    except MalformedEntry:
        return ""
