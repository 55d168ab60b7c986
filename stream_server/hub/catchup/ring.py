"""The recent entries of the log, so that a client that was away for a moment costs Redis nothing."""

from collections import deque
from collections.abc import Callable, Iterator

from stream_server.events.entry import Entry
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.kinds import CREATION_KINDS
from stream_server.events.position import Position

MAX_REMEMBERED_CUTS = 16
"""So many lost ends of the log are remembered."""


class Ring:
    """Contiguous entries up to the head, bounded by ``max_bytes`` and ``max_age_ms``.

    ``floor`` is the position after which everything is here. ``deleted_ids`` holds the ids of statuses and comments
    whose end is here: nothing in the ring that shows one of them may be replayed as it was. ``cut_count`` counts how often
    an end of it was taken back.

    What the log lost is remembered by its ends: with the clock set back, new entries stand among lost ones.

    Decoded and framed, an entry weighs ten times its bytes. So who was added or read since the last :meth:`drop_unread_caches` but
    one is warm, all others are their bytes only: a crowd that returns reads the same entries for longer than one beat.
    """

    def __init__(self, floor: Position, *, max_bytes: int, max_age_ms: float, now_ms: Callable[[], int]) -> None:
        self.floor = floor
        self.size_bytes = 0
        self.cut_count = 0
        self.deleted_ids: set[str] = set()
        self._entries: deque[Entry] = deque()
        self._cuts: deque[tuple[Position, Position]] = deque(maxlen=MAX_REMEMBERED_CUTS)
        self._recently_read: dict[Entry, None] = {}
        self._previously_read: dict[Entry, None] = {}
        self._max_bytes = max_bytes
        self._max_age_ms = max_age_ms
        self._now_ms = now_ms

    def set_limits(self, *, max_bytes: int, max_age_ms: float) -> None:
        """From now on these bounds hold."""
        self._max_bytes = max_bytes
        self._max_age_ms = max_age_ms
        self._trim()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def head(self) -> Position:
        """The place of the newest entry; the floor while there is none."""
        return self._entries[-1].position if self._entries else self.floor

    def append(self, entry: Entry) -> None:
        """Add the next entry of the log and let go of the oldest that do not fit any more."""
        last = self.head
        if entry.position.n != last.n + 1 or entry.position <= last:
            raise ValueError(f"{entry.position.cursor} does not follow {last.cursor}")
        self._entries.append(entry)
        self._recently_read[entry] = None
        self.size_bytes += entry.size
        if entry.kind in CREATION_KINDS:
            self.deleted_ids.add(_subject_id(entry))
        self._trim()

    def covers(self, position: Position) -> bool:
        """Whether all that follows ``position`` is here, and it stands where its number does.

        It may name a place between two entries: what comes before the first entry of a trimmed log is one.
        """
        index = position.n - self.floor.n
        if not 0 <= index <= len(self._entries):
            return False
        below = self._entries[index - 1].position if index else self.floor
        if index == len(self._entries) or self._find_cut(position) is not None:
            return position == below
        return below[:2] <= position[:2] < self._entries[index].position[:2]

    def contains(self, position: Position) -> bool:
        """Whether the entry at ``position`` is here."""
        index = position.n - self.floor.n - 1
        return 0 <= index < len(self._entries) and self._entries[index].position == position

    def read_after(self, position: Position, *, max_entries: int, max_bytes: int) -> list[Entry]:
        """The entries that follow ``position``, which the ring reaches, at most so many."""
        page: list[Entry] = []
        weight = 0
        for index in range(position.n - self.floor.n, len(self._entries)):
            entry = self._entries[index]  # from the nearer end, 64 at a step; islice would walk from the oldest
            weight += entry.size
            if page and (len(page) >= max_entries or weight > max_bytes):
                break
            page.append(entry)
            self._recently_read[entry] = None
        return page

    def iter_numbers(self, first_number: int, last_number: int) -> Iterator[Entry]:
        """The entries with these numbers, both here."""
        for n in range(first_number, last_number + 1):
            entry = self._entries[n - self.floor.n - 1]
            self.mark_read(entry)
            yield entry

    def mark_read(self, entry: Entry) -> None:
        """It is read, and so warm."""
        self._recently_read[entry] = None

    def resume_position_for(self, position: Position) -> Position:
        """Where the log went on for whoever had ``position``, which it lost; else the newest place with a lower id."""
        survivor = self._find_cut(position)
        if survivor is not None:
            return survivor
        return next((known for known in self.positions_newest_first() if known[:2] < position[:2]), self.floor)

    def positions_newest_first(self) -> Iterator[Position]:
        """The places of all entries here."""
        return (entry.position for entry in reversed(self._entries))

    def cut_after(self, position: Position) -> None:
        """The log goes on after ``position``: forget what came behind it, or everything if it is not here."""
        last = self.head
        self.cut_count += 1
        if position < last:
            self._cuts.append((position, last))
        while self._entries and self._entries[-1].position != position:
            self._forget(self._entries.pop())
        if not self._entries:
            self.floor = position

    def drop_unread_caches(self) -> None:
        """Let go of what was decoded and framed, where nobody has read it since the last time."""
        for entry in self._previously_read:
            if entry not in self._recently_read:
                entry.drop_caches()
        self._previously_read, self._recently_read = self._recently_read, {}

    def _find_cut(self, position: Position) -> Position | None:
        """The place behind which this one was cut off, None if it was not."""
        return next((to for to, last in reversed(self._cuts) if to[:2] < position[:2] <= last[:2]), None)

    def _trim(self) -> None:
        oldest_ms = self._now_ms() - self._max_age_ms
        entries = self._entries
        while entries and (self.size_bytes > self._max_bytes or entries[0].position.ms < oldest_ms):
            self.floor = entries[0].position
            self._forget(entries.popleft())

    def _forget(self, entry: Entry) -> None:
        self.size_bytes -= entry.size
        self._recently_read.pop(entry, None)
        self._previously_read.pop(entry, None)
        if entry.kind in CREATION_KINDS:
            self.deleted_ids.discard(_subject_id(entry))


def _subject_id(entry: Entry) -> str:
    try:
        return entry.subject_id or ""
    except MalformedEntry:
        return ""
