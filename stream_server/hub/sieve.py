"""Which entries of the ring may match, found by their keys: a crowd that returns looks at few of those it passes.

While a client is live the index finds whom an entry concerns; while it catches up this finds the entries that concern
it. Both go by the same keys, so both tell the same.
"""

from collections.abc import Iterator

from filters.key import Key
from stream_server.events import Entry, MalformedEntry, Position
from stream_server.hub.ring import Ring

BLOCK = 256
"""So many numbers of the log are looked through at once; blocks begin at its multiples, for all the same."""

BLOCKS = 32
"""So many are kept, the last ones made: about 1 MB each while they are."""


class Block:
    """A stretch of the ring: its entries, and for each key which of them have it, as the bits of a number."""

    __slots__ = ("_always", "_by_key", "entries", "first", "used")

    def __init__(self, first: int) -> None:
        self.first = first
        self.entries: list[Entry] = []
        self.used = True
        self._by_key: dict[Key, int] = {}
        self._always = 0

    @property
    def next(self) -> int:
        """The number of the entry to be added next."""
        return self.first + len(self.entries)

    def add(self, entry: Entry) -> None:
        """The next entry. What tells of a loss concerns all, and what may show a quote is not found by its keys."""
        bit = 1 << len(self.entries)
        self.entries.append(entry)
        try:
            if entry.kind == "rollback" or entry.quoted is not None:
                self._always |= bit
            by_key = self._by_key
            for key in entry.event.keys:
                by_key[key] = by_key.get(key, 0) | bit
        except MalformedEntry:
            return  # matches nothing

    def find(self, sought: frozenset[Key], behind: int) -> Iterator[Entry]:
        """In order, those behind number ``behind`` that have one of these keys, or must be looked at by themselves."""
        bits = self._always
        for key in self._by_key.keys() & sought:
            bits |= self._by_key[key]
        at = max(0, behind + 1 - self.first)
        bits >>= at
        while bits:
            step = (bits & -bits).bit_length()
            at += step
            yield self.entries[at - 1]
            bits >>= step


class Sieve:
    """The blocks of one ring, made when somebody comes past, and let go of when nobody does any more."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._blocks: dict[int, Block] = {}
        self._cuts = ring.cuts

    def after(self, position: Position, sought: frozenset[Key], most_bytes: int) -> tuple[list[Entry], Position]:
        """Of what follows ``position``, which the ring reaches, what may match; and up to where that is all of it.

        It ends at the head, or when that is so many bytes, or where more than one block would have to be made.
        """
        found: list[Entry] = []
        weight, made = 0, False
        while position != self._ring.head and weight < most_bytes:
            block = self._known(position.n // BLOCK)
            if block is None:
                if made:
                    break
                made, block = True, self._make(position.n // BLOCK)
            for entry in block.find(sought, position.n):
                found.append(entry)
                weight += entry.size
            position = block.entries[-1].position
        return found, position

    def cool(self) -> None:
        """Let go of blocks that nobody came past since the last time."""
        self._blocks = {number: block for number, block in self._blocks.items() if block.used}
        for block in self._blocks.values():
            block.used = False

    def _known(self, number: int) -> Block | None:
        """The block, with what came to the ring since."""
        if self._cuts != self._ring.cuts:
            self._blocks.clear()
            self._cuts = self._ring.cuts
        block = self._blocks.get(number)
        if block is None or block.next <= self._ring.floor.n:  # what came since is not in the ring any more
            return None
        block.used = True
        self._extend(block, (number + 1) * BLOCK)
        return block

    def _make(self, number: int) -> Block:
        self._blocks.pop(number, None)
        while len(self._blocks) >= BLOCKS:
            del self._blocks[next(iter(self._blocks))]  # the one that was made first
        block = self._blocks[number] = Block(max(number * BLOCK, self._ring.floor.n) + 1)
        self._extend(block, (number + 1) * BLOCK)
        return block

    def _extend(self, block: Block, last: int) -> None:
        for entry in self._ring.between(block.next, min(last, self._ring.head.n)):
            block.add(entry)
