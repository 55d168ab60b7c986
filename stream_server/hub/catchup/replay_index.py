"""Finds the entries of the ring that may match a subscription, so that returning clients test few entries.

For live clients the subscription index finds the clients of an entry. For a client that catches up, the replay index
finds its entries. Both use the same keys, so both find the same. A filter without keys is tested once for all clients
with equal subscriptions, and the result is kept.

The raw screen rules out entries whose undecoded JSON lacks a key of the filter.
"""

import time
from collections import Counter
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from filters.base import FilterFailure
from filters.index_keys import USER, Key
from filters.subscription import Subscription
from filters.tokens import fold
from stream_server.events.content import MalformedEntry
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.catchup.ring import Ring

Screen: TypeAlias = tuple[str, ...]
"""Case-folded texts. An entry whose folded JSON has none of them does not match."""

MAX_SCREEN_KEYS = 16
"""Most keys of a screen. Searching for more takes as long as decoding."""


@lru_cache(1024)
def make_screen(keys: frozenset[Key]) -> Screen | None:
    """Return a test that rules out entries by their raw JSON, for a filter with these keys.

    None if the keys cannot be found in JSON, or if there are too many.
    """
    if len(keys) > MAX_SCREEN_KEYS:
        return None
    found = []
    for key in keys:
        if key.startswith(USER):
            found.append(f'"{key.removeprefix(USER)}"')
            continue
        term = key.lstrip("#@$")  # the JSON of a tag may have the text without its sign
        if not term or not term.isascii() or not term.isprintable() or '"' in term or "\\" in term:
            return None  # its characters may stand in JSON as escapes
        found.append(term)
    return tuple(found)


def may_have_key(body: bytes, screen: Screen) -> bool:
    """Return whether an entry with the JSON ``body`` may have one of the keys. If unsure, return True.

    Folding treats each letter by itself, except for accents after it. So the folded JSON has the folded texts in it.
    """
    if b"\\u" in body:
        return True  # a letter may be written as an escape
    try:
        folded = fold(body.decode())
    except UnicodeDecodeError:
        return True  # decoding the entry finds this, too
    return any(text in folded for text in screen)


BLOCK_ENTRIES = 256
"""Number of entries in one block. Blocks begin at its multiples, so all clients share them."""

MAX_BLOCKS = 32
"""Number of blocks that are kept, the latest ones. A block takes 0.5 to 1.6 MB, beside its decoded entries."""

MAX_SCAN_RESULTS = 16
"""Number of subscriptions without keys whose results one block keeps."""


class ReplayQuery(NamedTuple):
    """The filters of a client that catches up. An entry needs one of ``keys`` to match, unless ``keys`` is None."""

    subscription: Subscription
    keys: frozenset[Key] | None


class ScanResult(NamedTuple):
    """Which of a block's entries ``begin`` to ``end`` (exclusive) may match: bit i of ``bits`` is 1 if entry i may."""

    begin: int
    end: int
    bits: int


class IndexBlock:
    """Up to `BLOCK_ENTRIES` consecutive entries, indexed: for each key, a bit set says which entries have the key.

    ``first_number`` is the first entry's log number. ``was_used``: the block was read since `drop_unused_blocks` ran.
    """

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
        """Log number of the next entry to add."""
        return self.first_number + len(self.entries)

    def add(self, entry: Entry) -> None:
        """Add the next entry. Rollbacks, quotes and entries with earlier versions are candidates in every query.

        A search by keys could miss them.
        """
        bit = 1 << len(self.entries)
        self.entries.append(entry)
        try:
            if entry.kind == "rollback" or entry.quoted_author is not None or entry.facts.before:
                self._always_bits |= bit
            by_key = self._bits_by_key
            for key in entry.event.index_keys:
                by_key[key] = by_key.get(key, 0) | bit
        except MalformedEntry:
            return  # a malformed entry matches nothing

    def match_keys(self, search_keys: frozenset[Key]) -> int:
        """Return a bit set of the entries with at least one of these keys. It includes those of every query."""
        bits = self._always_bits
        for key in self._bits_by_key.keys() & search_keys:
            bits |= self._bits_by_key[key]
        return bits

    def scan(self, subscription: Subscription, begin: int, ring: Ring, deadline: float) -> ScanResult:
        """Return which entries from index ``begin`` on may match a subscription without search keys.

        Continues an earlier scan if possible. Tests at least one new entry. Stops at ``deadline`` (`thread_time`).
        """
        known = self._scan_results.pop(subscription.canonical_form, None)
        if known is None or not known.begin <= begin <= known.end:
            known = ScanResult(begin, begin, 0)
        _, end, bits = known
        while end < len(self.entries):
            ring.mark_read(self.entries[end])
            bits |= _match_bit(subscription, self.entries[end]) << end
            end += 1
            if time.thread_time() > deadline:
                break
        while len(self._scan_results) >= MAX_SCAN_RESULTS:
            del self._scan_results[next(iter(self._scan_results))]
        self._scan_results[subscription.canonical_form] = ScanResult(known.begin, end, bits)
        return ScanResult(known.begin, end, bits | self._always_bits)

    def select(self, bits: int, begin: int, end: int) -> Iterator[Entry]:
        """Yield, in log order, the entries from index ``begin`` to ``end`` (exclusive) whose bit in ``bits`` is 1."""
        bits = (bits & ((1 << end) - 1)) >> begin
        at = begin
        while bits:
            step = (bits & -bits).bit_length()
            at += step
            yield self.entries[at - 1]
            bits >>= step


class ReplayIndex:
    """Finds the entries of the ring that may match a client's filters. Its index is built in blocks, on demand."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._blocks: dict[int, IndexBlock] = {}
        self._readings: Counter[int] = Counter()
        self._ring_cut_count = ring.cut_count

    def find_after(
        self, position: Position, query: ReplayQuery, max_bytes: int, deadline: float
    ) -> tuple[list[Entry], Position]:
        """Return the entries after ``position`` that may match, and the position at which the scan ended.

        Call it only if the ring covers ``position``. The scan ends at the head, when the found entries exceed
        ``max_bytes``, or at ``deadline`` (seconds of `thread_time`). If the returned position equals
        ``position``, the deadline came before any entry was scanned: the caller must test the ring's entries itself.
        """
        found: list[Entry] = []
        weight = 0
        while position != self._ring.head:
            number = position.n // BLOCK_ENTRIES
            screen = self._screen_for(number, query)
            if screen is not None:
                for entry in self._ring.peek_numbers(position.n + 1, self._last_number(number)):
                    position = entry.position
                    if entry.kind == "rollback" or may_have_key(entry.body, screen):
                        self._ring.mark_read(entry)
                        found.append(entry)
                        weight += entry.size
                        if weight > max_bytes:
                            return found, position
                if time.thread_time() > deadline:
                    break
                continue
            block = self._get_block(number, deadline)
            begin, end = position.n + 1 - block.first_number, len(block.entries)
            if begin < end:
                if query.keys is not None:
                    bits = block.match_keys(query.keys)
                else:
                    _, end, bits = block.scan(query.subscription, begin, self._ring, deadline)
                for entry in block.select(bits, begin, end):
                    self._ring.mark_read(entry)
                    found.append(entry)
                    weight += entry.size
                    if weight > max_bytes:
                        return found, entry.position
                position = block.entries[end - 1].position
            if time.thread_time() > deadline:
                break
        return found, position

    def drop_unused_blocks(self) -> None:
        """Drop the blocks that no client has read since the last call."""
        self._blocks = {number: block for number, block in self._blocks.items() if block.was_used}
        for block in self._blocks.values():
            block.was_used = False
        self._readings.clear()

    def _screen_for(self, number: int, query: ReplayQuery) -> Screen | None:
        """Count one more reader of the block ``number``, and say how this reader searches the block.

        Return a test of the raw JSON of an entry while the block has too few readers to be indexed. Return None if the
        block is indexed, if it is to be indexed now, or if the query has no keys.
        """
        if number in self._blocks or query.keys is None:
            return None
        self._readings[number] += 1
        # A block is indexed at its fourth reading. Before, its JSON is screened, at a twentieth of the cost.
        return make_screen(query.keys) if self._readings[number] < 4 else None

    def _last_number(self, number: int) -> int:
        """Return the log number of the last entry of this block that the ring has."""
        return min((number + 1) * BLOCK_ENTRIES, self._ring.head.n)

    def _get_block(self, number: int, deadline: float) -> IndexBlock:
        """Return the block with this number. First add its new entries from the ring, stopping at ``deadline``."""
        if self._ring_cut_count != self._ring.cut_count:
            self._blocks.clear()
            self._ring_cut_count = self._ring.cut_count
        block, first = self._blocks.get(number), max(number * BLOCK_ENTRIES, self._ring.floor.n) + 1
        # Made anew if its next entries have left the ring, or if the ring has got older ones in front of its first.
        if block is None or not block.first_number <= first <= block.next_number:
            self._blocks.pop(number, None)
            while len(self._blocks) >= MAX_BLOCKS:
                del self._blocks[next(iter(self._blocks))]  # the oldest one
            block = self._blocks[number] = IndexBlock(first)
        block.was_used = True
        for entry in self._ring.iter_numbers(block.next_number, self._last_number(number)):
            block.add(entry)
            if time.thread_time() > deadline:
                break
        return block


def _match_bit(subscription: Subscription, entry: Entry) -> int:
    """Return 1 if the entry may match, else 0. A filter that raises counts as a match: the reader handles the error."""
    try:
        return int(subscription.matches(entry.event))
    except FilterFailure:
        return 1
    except MalformedEntry:
        return 0
