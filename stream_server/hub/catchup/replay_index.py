"""Which entries of the ring may match: a crowd that returns looks at few of those it passes.

While a client is live the index finds whom an entry concerns; while it catches up this finds the entries that concern
it. Both go by the same keys, so both tell the same. Filters without keys are asked once for all who ask the same.
"""

import time
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from filters.base import FilterFailure
from filters.index_keys import Key
from filters.subscription import Subscription
from stream_server.events.entry import Entry
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.position import Position
from stream_server.hub.catchup.ring import Ring

BLOCK_ENTRIES = 256
"""So many numbers of the log are looked through at once; blocks begin at its multiples, for all the same."""

MAX_BLOCKS = 32
"""So many are kept, the last ones made: 0.5 to 1.6 MB each while they are, beside the entries as they were decoded."""

MAX_SCAN_RESULTS = 16
"""So many different subscriptions without keys are remembered with what they asked for in a block."""


class ReplayQuery(NamedTuple):
    """What somebody looks for: ``keys`` of which each entry has one, None where the subscription is to be asked."""

    subscription: Subscription
    keys: frozenset[Key] | None


class ScanResult(NamedTuple):
    """Which of a block's entries from one index up to another a subscription asks for, as the bits of a number."""

    begin: int
    end: int
    bits: int


class IndexBlock:
    """A stretch of the ring: its entries, and for each key which of them have it, as the bits of a number."""

    __slots__ = ("_always_bits", "_bits_by_key", "_scan_results", "entries", "first_number", "was_used")

    def __init__(self, first_number: int) -> None:
        self.first_number = first_number
        self.entries: list[Entry] = []
        self.was_used = True
        self._bits_by_key: dict[Key, int] = {}
        self._scan_results: dict[Hashable, ScanResult] = {}
        self._always_bits = 0

    @property
    def next_number(self) -> int:
        """The number of the entry to be added next."""
        return self.first_number + len(self.entries)

    def add(self, entry: Entry) -> None:
        """The next entry. What tells of a loss concerns all, and what may show a quote is not found by its keys."""
        bit = 1 << len(self.entries)
        self.entries.append(entry)
        try:
            if entry.kind == "rollback" or entry.quoted_author is not None:
                self._always_bits |= bit
            by_key = self._bits_by_key
            for key in entry.event.index_keys:
                by_key[key] = by_key.get(key, 0) | bit
        except MalformedEntry:
            return  # matches nothing

    def match_keys(self, search_keys: frozenset[Key]) -> int:
        """Which entries have one of these keys, or must be looked at by themselves, as bits."""
        bits = self._always_bits
        for key in self._bits_by_key.keys() & search_keys:
            bits |= self._bits_by_key[key]
        return bits

    def scan(self, subscription: Subscription, begin: int, ring: Ring, deadline: float) -> ScanResult:
        """Which entries from ``begin`` on such a subscription asks for; at least one is looked at, until ``deadline``."""
        known = self._scan_results.pop(subscription.canonical_form, None)
        if known is None or not known.begin <= begin <= known.end:
            known = ScanResult(begin, begin, 0)
        _, end, bits = known
        while end < len(self.entries):
            ring.mark_read(self.entries[end])
            bits |= _match_bit(subscription, self.entries[end]) << end
            end += 1
            if time.monotonic() > deadline:
                break
        while len(self._scan_results) >= MAX_SCAN_RESULTS:
            del self._scan_results[next(iter(self._scan_results))]
        self._scan_results[subscription.canonical_form] = ScanResult(known.begin, end, bits)
        return ScanResult(known.begin, end, bits | self._always_bits)

    def select(self, bits: int, begin: int, end: int) -> Iterator[Entry]:
        """In order, those of ``bits`` from one index up to another."""
        bits = (bits & ((1 << end) - 1)) >> begin
        at = begin
        while bits:
            step = (bits & -bits).bit_length()
            at += step
            yield self.entries[at - 1]
            bits >>= step


class ReplayIndex:
    """The blocks of one ring, made when somebody comes past, and let go of when nobody does any more."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._blocks: dict[int, IndexBlock] = {}
        self._ring_cut_count = ring.cut_count

    def find_after(
        self, position: Position, query: ReplayQuery, max_bytes: int, deadline: float
    ) -> tuple[list[Entry], Position]:
        """Of what follows ``position``, which the ring reaches, what may match; and up to where that is all of it.

        It ends at the head, when that is so many bytes, or when ``deadline`` (monotonic) is over. That may be where it
        began: a block takes its time to be made, and whoever cannot wait for that looks at each entry.
        """
        found: list[Entry] = []
        weight = 0
        while position != self._ring.head:
            block = self._get_block(position.n // BLOCK_ENTRIES, deadline)
            begin, end = position.n + 1 - block.first_number, len(block.entries)
            bits, end = self._match_block(block, query, begin, deadline) if begin < end else (0, end)
            for entry in block.select(bits, begin, end) if begin < end else ():
                self._ring.mark_read(entry)
                found.append(entry)
                weight += entry.size
                if weight > max_bytes:
                    return found, entry.position
            if begin < end:
                position = block.entries[end - 1].position
            if time.monotonic() > deadline:
                break
        return found, position

    def drop_unused_blocks(self) -> None:
        """Let go of blocks that nobody came past since the last time."""
        self._blocks = {number: block for number, block in self._blocks.items() if block.was_used}
        for block in self._blocks.values():
            block.was_used = False

    def _match_block(self, block: IndexBlock, query: ReplayQuery, begin: int, deadline: float) -> tuple[int, int]:
        if query.keys is not None:
            return block.match_keys(query.keys), len(block.entries)
        answer = block.scan(query.subscription, begin, self._ring, deadline)
        return answer.bits, answer.end

    def _get_block(self, number: int, deadline: float) -> IndexBlock:
        """The block, with what came to the ring since, as far as there is time."""
        if self._ring_cut_count != self._ring.cut_count:
            self._blocks.clear()
            self._ring_cut_count = self._ring.cut_count
        block = self._blocks.get(number)
        if block is None or block.next_number <= self._ring.floor.n:  # what came since is not in the ring any more
            block = self._create_block(number)
        block.was_used = True
        for entry in self._ring.iter_numbers(block.next_number, min((number + 1) * BLOCK_ENTRIES, self._ring.head.n)):
            block.add(entry)
            if time.monotonic() > deadline:
                break
        return block

    def _create_block(self, number: int) -> IndexBlock:
        self._blocks.pop(number, None)
        while len(self._blocks) >= MAX_BLOCKS:
            del self._blocks[next(iter(self._blocks))]  # the one that was made first
        block = self._blocks[number] = IndexBlock(max(number * BLOCK_ENTRIES, self._ring.floor.n) + 1)
        return block


def _match_bit(subscription: Subscription, entry: Entry) -> int:
    """A filter that raises is asked again for each stream by itself, which is told then."""
    try:
        return int(subscription.matches(entry.event))
    except FilterFailure:
        return 1
    except MalformedEntry:
        return 0
