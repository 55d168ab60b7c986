"""Clients that read the log backwards: the preview of a rule, counts of the past, and the search for recent posts.

They find what a stream would have sent, newest first, and end with one answer. Few of them run at the same time. Each
one reads for a second at most. Where it stopped, another one can go on.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.client import SocketlessClient, SubscribeRequest
from stream_server.hub.delivery import Delivery
from stream_server.hub.hub import Hub
from stream_server.hub.tally import Tally

MAX_QUEUE_SECONDS = 5.0
"""Longest time in seconds that a look back waits for others to finish."""

MAX_WORK_SECONDS = 1.0
"""Time in seconds of reading and matching after which a look back reads no further page."""

MIN_WORK_SECONDS = 0.2
"""Time in seconds for which a look back reads on, although its user has used up the share of processor time.

It is as much as a quiet user may take at once. With less, users who look back often would get one page in each answer.
"""

MAX_SCANNED_ENTRIES = 50_000
"""Number of entries of the log after which a look back reads no further page."""

MAX_EXAMPLES = 10
"""Number of matching entries that a preview keeps, the latest ones. It keeps as many near misses."""

BY_FIRST_RULE = b'[{"id":"r1",'
"""How the matches of an entry begin that the first rule of the request matches: they are in the order of the rules."""


T = TypeVar("T")


class Payer(Protocol):
    """The accounts that pay for the processor time of matching.

    Attributes:
        is_over: Whether the share of processor time is used up.
    """

    @property
    def is_over(self) -> bool: ...

    def run(self, work: Callable[[], T]) -> T:
        """Call ``work`` and return its result. Its time is charged, even if it raises."""


class ScanEnd(Enum):
    """Why a look back read no further page."""

    WHOLE = "all entries of the span are scanned"
    CUT = "it has reached a limit, or found enough"
    LOST = "the log has no earlier entries"


class Scan(NamedTuple):
    """The part of the log that a look back has scanned.

    Attributes:
        end: Why it ended.
        oldest: Position of the oldest scanned entry. None if there was none.
        scanned: Number of scanned entries, of any kind.
        filters_failed: Whether a filter raised or took too long, and was disabled meanwhile.
    """

    end: ScanEnd
    oldest: Position | None
    scanned: int
    filters_failed: bool


class LookBack(SocketlessClient):
    """Matches the entries before a position, page by page, in slices, so that other tasks get their turn."""

    __slots__ = ("_filters_failed", "_hub", "_is_done", "_payer")

    def __init__(self, hub: Hub, request: SubscribeRequest, payer: Payer) -> None:
        """The request's position is the one before the oldest entry that is asked for."""
        super().__init__(request)
        self._payer = payer
        self._hub = hub
        self._filters_failed = False
        self._is_done = False

    def _take(self, found: list[Delivery]) -> None:
        """Keep what was found in one page, in log order. It is older than what was found before.

        May set ``_is_done``, so that no further page is read.
        """
        raise NotImplementedError

    async def scan(self, last: Position | None = None, *, inclusive: bool = True) -> Scan:
        """Scan from ``last``, the position of an entry, back to the request's position. By default from the head.

        Without ``inclusive``, begin with the entry before ``last``. It ends after `MAX_WORK_SECONDS`, or after
        `MIN_WORK_SECONDS` if the payer is over, or after `MAX_SCANNED_ENTRIES` and a page. Raises `Unavailable` if the
        log cannot be read, if too many look back, or if the hub disconnected this one, for example because the user's
        permissions may be out of date.
        """
        hub = self._hub
        try:
            async with asyncio.timeout(MAX_QUEUE_SECONDS):
                await hub.preview_slots.acquire()
        except TimeoutError:
            raise Unavailable("Too many previews are running; try again.", retry_after=5) from None
        try:
            hub.register(self)
            scanned = await self._read_back_from(hub.head if last is None else last, inclusive=inclusive)
        finally:
            reason = self.disconnect_reason
            hub.unregister(self)
            hub.preview_slots.release()
        if reason is not None:  # its viewer or rules may be outdated
            raise Unavailable("The server is resynchronising; try again.", retry_after=1)
        return scanned

    async def _read_back_from(self, end: Position, *, inclusive: bool) -> Scan:
        clock = asyncio.get_running_loop().time
        floor, spent, count = self.since, 0.0, 0
        oldest: Position | None = None
        outcome = ScanEnd.WHOLE
        while end.n - (not inclusive) > floor.n:
            most = MIN_WORK_SECONDS if self._payer.is_over else MAX_WORK_SECONDS
            if count >= MAX_SCANNED_ENTRIES or spent >= most or self._is_done:
                outcome = ScanEnd.CUT
                break
            began = clock()
            read = await self._hub.catchup_reader.read_back(end, inclusive=inclusive)
            page = [entry for entry in read if entry.position.n > floor.n]
            if not page or self.disconnect_reason is not None:
                outcome = ScanEnd.LOST
                break
            await self._match(page)
            end = oldest = page[0].position
            inclusive = False
            count += len(page)
            spent += clock() - began
        return Scan(outcome, oldest, count, self._filters_failed)

    async def _match(self, entries: list[Entry]) -> None:
        """Match the entries of one page, in slices. They are older than the entries of all pages before."""
        found: list[Delivery] = []
        while entries and self.disconnect_reason is None:
            matched = await self._hub.catchup_reader.match(self, entries, self._payer.run)
            found += matched.deliveries
            self._filters_failed = self._filters_failed or matched.notice is not None
            entries = [entry for entry in entries if entry.position > matched.end_position]
            await asyncio.sleep(0)
        self._take(found)


class PreviewResult(NamedTuple):
    """The number of recent entries that a rule would have matched, with examples.

    Attributes:
        matched_count: Number of matching entries among the scanned ones.
        scanned_count: Number of entries that were scanned. They are the newest ones.
        start: Position before the oldest scanned entry.
        is_complete: Whether all entries of the requested span were scanned, with unchanged filters.
        examples: The latest matching entries, in log order.
        started_ms: Time at which the preview began, in ms since 1970. The entries up to then were scanned.
        near_count: Number of near misses among the scanned entries, 0 if they were not asked for.
        near_misses: The latest near misses, in log order.
    """

    matched_count: int
    scanned_count: int
    start: Position
    is_complete: bool
    examples: list[Delivery]
    started_ms: int
    near_count: int = 0
    near_misses: tuple[Delivery, ...] = ()


class RulePreview(LookBack):
    """Counts the recent entries that a rule would have matched, and keeps the latest as examples.

    If the request has further rules beside the first one, what matches only those is a near miss, and is kept apart.
    """

    __slots__ = ("_examples", "_matched_count", "_near_count", "_near_misses")

    def __init__(self, hub: Hub, request: SubscribeRequest, payer: Payer) -> None:
        super().__init__(hub, request, payer)
        self._matched_count = self._near_count = 0
        self._examples: list[Delivery] = []
        self._near_misses: tuple[Delivery, ...] = ()

    async def run(self) -> PreviewResult:
        """Scan from the present head. Raises what :meth:`scan` raises."""
        started_ms = self._hub.now_ms()
        scan = await self.scan()
        is_whole = scan.end is ScanEnd.WHOLE
        start = self.since if is_whole or scan.oldest is None else scan.oldest.previous()
        is_complete = is_whole and not scan.filters_failed
        return PreviewResult(
            self._matched_count, scan.scanned, start, is_complete, self._examples, started_ms,
            self._near_count, self._near_misses,
        )  # fmt: skip

    def _take(self, found: list[Delivery]) -> None:
        matched, near = list[Delivery](), list[Delivery]()
        for one in found:
            (matched if (one.matched_json or b"").startswith(BY_FIRST_RULE) else near).append(one)
        self._matched_count += len(matched)
        self._near_count += len(near)
        self._examples = [*matched, *self._examples][-MAX_EXAMPLES:]
        self._near_misses = (*near, *self._near_misses)[-MAX_EXAMPLES:]


class CountBack(LookBack):
    """Counts the entries that the request's rules match, in buckets of equal length.

    Attributes:
        tallies: What was counted, by the begin of each bucket in ms since 1970.
    """

    __slots__ = ("_bucket_ms", "tallies")

    def __init__(self, hub: Hub, request: SubscribeRequest, payer: Payer, bucket_ms: int) -> None:
        super().__init__(hub, request, payer)
        self._bucket_ms = bucket_ms
        self.tallies: defaultdict[int, Tally] = defaultdict(Tally)

    def _take(self, found: list[Delivery]) -> None:
        for delivery in found:
            ms = delivery.entry.position.ms
            self.tallies[ms - ms % self._bucket_ms].add(delivery.matched_json)


class SearchBack(LookBack):
    """Finds the latest entries that the request's filters match.

    Attributes:
        found: What was found, newest first; at most as many as are wanted.
        has_more: Whether a page had more than are wanted.
    """

    __slots__ = ("_wanted", "found", "has_more")

    def __init__(self, hub: Hub, request: SubscribeRequest, payer: Payer, wanted: int) -> None:
        super().__init__(hub, request, payer)
        self._wanted = wanted
        self.found: list[Delivery] = []
        self.has_more = False

    def _take(self, found: list[Delivery]) -> None:
        room = self._wanted - len(self.found)
        self.has_more = len(found) > room
        self.found += found[::-1][:room]
        self._is_done = len(self.found) == self._wanted
