"""Which entries of the ring may match: a crowd that returns looks at few of those it passes.

While a client is live the index finds whom an entry concerns; while it catches up this finds the entries that concern
it. Both go by the same keys, so both tell the same. Filters without keys are asked once for all who ask the same.
"""

import time
from collections.abc import Hashable, Iterator

from filters.base import Failed
from filters.combine import Subscription
from filters.key import Key
from stream_server.events import Entry, MalformedEntry, Position
from stream_server.hub.ring import Ring

BLOCK = 256
"""So many numbers of the log are looked through at once; blocks begin at its multiples, for all the same."""

BLOCKS = 32
"""So many are kept, the last ones made: about 1 MB each while they are."""

ANSWERS = 16
"""So many different subscriptions without keys are remembered with what they asked for in a block."""


class Block:
    """A stretch of the ring: its entries, and for each key which of them have it, as the bits of a number."""

    __slots__ = ("_always", "_answers", "_by_key", "entries", "first", "used")

    def __init__(self, first: int) -> None:
        self.first = first
        self.entries: list[Entry] = []
        self.used = True
        self._by_key: dict[Key, int] = {}
        self._answers: dict[Hashable, tuple[int, int]] = {}
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

    def having(self, sought: frozenset[Key]) -> int:
        """Which entries have one of these keys, or must be looked at by themselves."""
        bits = self._always
        for key in self._by_key.keys() & sought:
            bits |= self._by_key[key]
        return bits

    def asked_for(self, subscription: Subscription, ends: float) -> tuple[int, int]:
        """Which entries such a subscription asks for, and how many were looked at: until ``ends`` (monotonic)."""
        bits, looked = self._answers.pop(subscription.key, (0, 0))
        for entry in self.entries[looked:]:
            bits |= _asks_for(subscription, entry) << looked
            looked += 1
            if time.monotonic() > ends:
                break
        while len(self._answers) >= ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[subscription.key] = bits, looked
        return bits | self._always, looked

    def pick(self, bits: int, begin: int, end: int) -> Iterator[Entry]:
        """In order, those of ``bits`` from one index up to another."""
        bits = (bits & ((1 << end) - 1)) >> begin
        at = begin
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

    def after(
        self,
        position: Position,
        subscription: Subscription,
        sought: frozenset[Key] | None,
        most_bytes: int,
        ends: float,
    ) -> tuple[list[Entry], Position]:
        """Of what follows ``position``, which the ring reaches, what may match; and up to where that is all of it.

        It has one of the keys ``sought``; without these the subscription is asked, until ``ends`` (monotonic) and not
        once an entry for each who asks the same. It ends at the head, when that is so many bytes, or where more than
        one block would have to be made.
        """
        found: list[Entry] = []
        weight, made = 0, False
        while position != self._ring.head:
            block = self._known(position.n // BLOCK)
            if block is None:
                if made:
                    break
                made, block = True, self._make(position.n // BLOCK)
            begin, looked = position.n + 1 - block.first, len(block.entries)
            if sought is not None:
                bits = block.having(sought)
            else:
                bits, looked = block.asked_for(subscription, ends)
            for entry in block.pick(bits, begin, looked):
                found.append(entry)
                weight += entry.size
                if weight > most_bytes:
                    return found, entry.position
            if looked > begin:
                position = block.entries[looked - 1].position
            if looked < len(block.entries):
                break
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


def _asks_for(subscription: Subscription, entry: Entry) -> int:
    """A filter that raises is asked again for each stream by itself, which is told then."""
    try:
        return int(subscription.matches(entry.event))
    except Failed:
        return 1
    except MalformedEntry:
        return 0
