"""Cells that append entries, and a node that publishes one order of all of them. Only a model, in one process.

A cell is a log with a clock of its own, which may be wrong or go back. A node hears each cell's entries late, and may
miss some. It reads what it missed from the cell's log, as a feed does.
"""

from typing import NamedTuple

CELL_BITS = 4
SEQUENCE_BITS = 12
MOST_CELLS = 1 << CELL_BITS
COUNTS = 1 << (SEQUENCE_BITS - CELL_BITS)
"""Entries of one cell in a millisecond."""


class Entry(NamedTuple):
    """An entry of a cell: its id, the cell's contiguous number, and whether it is only a promise."""

    id: int
    n: int
    is_heartbeat: bool


class Cell:
    """One cell: its log survives, and its clock reads ``clock_ms``."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.clock_ms = 0
        self.alive = True
        self.log: list[Entry] = []
        self._ms = self._count = 0

    def append(self, *, is_heartbeat: bool = False) -> Entry:
        """Append an entry. Its id is above all others of this cell, whatever the clock says."""
        ms = max(self.clock_ms, self._ms)
        self._count = self._count + 1 if ms == self._ms else 0
        if self._count == COUNTS:
            ms, self._count = ms + 1, 0
        self._ms = ms
        sequence = self._count << CELL_BITS | self.number
        entry = Entry(ms << SEQUENCE_BITS | sequence, len(self.log) + 1, is_heartbeat)
        self.log.append(entry)
        return entry

    def raise_to(self, watermark: int) -> None:
        """Let all further entries lie above the watermark. A cell that was given up does this before it returns."""
        self._ms = max(self._ms, (watermark >> SEQUENCE_BITS) + 1)
        self._count = 0


class Node:
    """Hears cells and publishes. Without ``waits`` it publishes at once what it hears, which is wrong."""

    def __init__(self, cells: list[Cell], *, waits: bool = True) -> None:
        self._cells = cells
        self._waits = waits
        self._heard: list[list[Entry]] = [[] for _ in cells]
        self._given_up: set[int] = set()
        self.waiting: list[Entry] = []
        self.published: list[int] = []
        self.watermark = 0

    def hear(self, cell: int, entry: Entry) -> None:
        """Take a message. A number that is too high shows that some were missed: they are read from the log."""
        if cell in self._given_up:
            return
        missing = self._cells[cell].log[len(self._heard[cell]) : entry.n]
        self._heard[cell] += missing
        self.waiting += [one for one in missing if not one.is_heartbeat]
        self._publish()

    def give_up(self, cell: int) -> None:
        """Go on without a cell that has been dead for too long."""
        self._given_up.add(cell)
        self._publish()

    def take_back(self, cell: int) -> list[int]:
        """Hear a cell again. Return the ids of the entries that lie below the watermark: they are told as a gap."""
        self._given_up.discard(cell)
        log = self._cells[cell].log
        unheard = log[len(self._heard[cell]) :]
        self._heard[cell] += unheard
        late = [one.id for one in unheard if not one.is_heartbeat and one.id <= self.watermark]
        self.waiting += [one for one in unheard if not one.is_heartbeat and one.id > self.watermark]
        self._publish()
        return late

    def _publish(self) -> None:
        trusted = (heard for cell, heard in enumerate(self._heard) if cell not in self._given_up)
        promised = [heard[-1].id if heard else 0 for heard in trusted]
        self.watermark = max(self.watermark, min(promised, default=self.watermark))
        due = sorted(one for one in self.waiting if not self._waits or one.id <= self.watermark)
        self.waiting = [one for one in self.waiting if one not in due]
        self.published += [one.id for one in due]
