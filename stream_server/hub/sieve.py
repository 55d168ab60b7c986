"""Which entries of the ring may match: a crowd that returns looks at few of those it passes.

While a client is live the index finds whom an entry concerns; while it catches up this finds the entries that concern
it. Both go by the same keys, so both tell the same. Filters without keys are asked once for all who ask the same.
"""

import time
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from filters.base import Failed
from filters.combine import Subscription
from filters.key import Key
from stream_server.events import Entry, MalformedEntry, Position
from stream_server.hub.ring import Ring

BLOCK = 256
"""So many numbers of the log are looked through at once; blocks begin at its multiples, for all the same."""

BLOCKS = 32
"""So many are kept, the last ones made: 0.5 to 1.6 MB each while they are, beside the entries as they were decoded."""

ANSWERS = 16
"""So many different subscriptions without keys are remembered with what they asked for in a block."""


class Sought(NamedTuple):
    """What somebody looks for: ``keys`` of which each entry has one, None where the subscription is to be asked."""

    subscription: Subscription
    keys: frozenset[Key] | None


class Answer(NamedTuple):
    """Which of a block's entries from one index up to another a subscription asks for, as the bits of a number."""

    begin: int
    end: int
    bits: int


class Block:
    """A stretch of the ring: its entries, and for each key which of them have it, as the bits of a number."""

    __slots__ = ("_always", "_answers", "_by_key", "entries", "first", "used")

    def __init__(self, first: int) -> None:
        self.first = first
        self.entries: list[Entry] = []
        self.used = True
        self._by_key: dict[Key, int] = {}
        self._answers: dict[Hashable, Answer] = {}
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
        """Which entries have one of these keys, or must be looked at by themselves, as bits."""
        bits = self._always
        for key in self._by_key.keys() & sought:
            bits |= self._by_key[key]
        return bits

    def asked_for(self, subscription: Subscription, begin: int, ring: Ring, ends: float) -> Answer:
        """Which entries from ``begin`` on such a subscription asks for; at least one is looked at, until ``ends``."""
        known = self._answers.pop(subscription.key, None)
        if known is None or not known.begin <= begin <= known.end:
            known = Answer(begin, begin, 0)
        _, end, bits = known
        while end < len(self.entries):
            ring.touch(self.entries[end])
            bits |= _asks_for(subscription, self.entries[end]) << end
            end += 1
            if time.monotonic() > ends:
                break
        while len(self._answers) >= ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[subscription.key] = Answer(known.begin, end, bits)
        return Answer(known.begin, end, bits | self._always)

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

    def after(self, position: Position, ask: Sought, most_bytes: int, ends: float) -> tuple[list[Entry], Position]:
        """Of what follows ``position``, which the ring reaches, what may match; and up to where that is all of it.

        It ends at the head, when that is so many bytes, or when ``ends`` (monotonic) is over. That may be where it
        began: a block takes its time to be made, and whoever cannot wait for that looks at each entry.
        """
        found: list[Entry] = []
        weight = 0
        while position != self._ring.head:
            block = self._block(position.n // BLOCK, ends)
            begin, end = position.n + 1 - block.first, len(block.entries)
            bits, end = self._bits(block, ask, begin, ends) if begin < end else (0, end)
            for entry in block.pick(bits, begin, end) if begin < end else ():
                self._ring.touch(entry)
                found.append(entry)
                weight += entry.size
                if weight > most_bytes:
                    return found, entry.position
            if begin < end:
                position = block.entries[end - 1].position
            if time.monotonic() > ends:
                break
        return found, position

    def cool(self) -> None:
        """Let go of blocks that nobody came past since the last time."""
        self._blocks = {number: block for number, block in self._blocks.items() if block.used}
        for block in self._blocks.values():
            block.used = False

    def _bits(self, block: Block, ask: Sought, begin: int, ends: float) -> tuple[int, int]:
        if ask.keys is not None:
            return block.having(ask.keys), len(block.entries)
        answer = block.asked_for(ask.subscription, begin, self._ring, ends)
        return answer.bits, answer.end

    def _block(self, number: int, ends: float) -> Block:
        """The block, with what came to the ring since, as far as there is time."""
        if self._cuts != self._ring.cuts:
            self._blocks.clear()
            self._cuts = self._ring.cuts
        block = self._blocks.get(number)
        if block is None or block.next <= self._ring.floor.n:  # what came since is not in the ring any more
            block = self._new(number)
        block.used = True
        for entry in self._ring.between(block.next, min((number + 1) * BLOCK, self._ring.head.n)):
            block.add(entry)
            if time.monotonic() > ends:
                break
        return block

    def _new(self, number: int) -> Block:
        self._blocks.pop(number, None)
        while len(self._blocks) >= BLOCKS:
            del self._blocks[next(iter(self._blocks))]  # the one that was made first
        block = self._blocks[number] = Block(max(number * BLOCK, self._ring.floor.n) + 1)
        return block


def _asks_for(subscription: Subscription, entry: Entry) -> int:
    """A filter that raises is asked again for each stream by itself, which is told then."""
    try:
        return int(subscription.matches(entry.event))
    except Failed:
        return 1
    except MalformedEntry:
        return 0
