"""The preview of a rule: how many recent entries it would have matched. It reads backwards, the newest page first."""

import asyncio
from typing import NamedTuple

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.client import SubscribeRequest, socketless_client
from stream_server.hub.delivery import Delivery
from stream_server.hub.hub import Hub

MAX_QUEUE_SECONDS = 5.0
"""Longest time in seconds that a preview waits for others to finish."""

MAX_WORK_SECONDS = 1.0
"""Time in seconds of reading and matching after which a preview reads no further page."""

MAX_SCANNED_ENTRIES = 50_000
"""Number of entries of the log after which a preview reads no further page."""

MAX_EXAMPLES = 10
"""Number of matching entries that are kept, the latest ones."""


class PreviewResult(NamedTuple):
    """The number of recent entries that a rule would have matched, with examples.

    Attributes:
        matched_count: Number of matching entries among the scanned ones.
        scanned_count: Number of entries that were scanned. They are the newest ones.
        start: Position before the oldest scanned entry.
        is_complete: Whether all entries of the requested span were scanned, with unchanged filters.
        examples: The latest matching entries, in log order.
        started_ms: Time at which the preview began, in ms since 1970. The entries up to then were scanned.
    """

    matched_count: int
    scanned_count: int
    start: Position
    is_complete: bool
    examples: list[Delivery]
    started_ms: int


class RulePreview:
    """Counts the recent entries that a rule would have matched, in slices, so that other tasks get their turn."""

    def __init__(self, hub: Hub, request: SubscribeRequest) -> None:
        self._hub = hub
        self._matched_count = 0
        self._filters_changed = False
        self._examples: list[Delivery] = []
        self._client = socketless_client(request)

    async def run(self) -> PreviewResult:
        """Scan from the present head back to the request's position, up to `MAX_WORK_SECONDS`.

        It scans at most `MAX_SCANNED_ENTRIES` and a page. Raises `Unavailable` if the log cannot be read, if too many
        previews run, or if the hub disconnected the preview, for example because the user's permissions may be out of
        date.
        """
        hub, client = self._hub, self._client
        try:
            async with asyncio.timeout(MAX_QUEUE_SECONDS):
                await hub.preview_slots.acquire()
        except TimeoutError:
            raise Unavailable("Too many previews are running; try again.", retry_after=5) from None
        try:
            head, started_ms = hub.head, hub.now_ms()
            hub.register(client)
            start = await self._read_back_from(head)
        finally:
            hub.unregister(client)
            hub.preview_slots.release()
        if client.disconnect_reason is not None:  # its viewer or rules may be outdated
            raise Unavailable("The server is resynchronising; try again.", retry_after=1)
        is_complete = start.n <= client.request.position.n and not self._filters_changed
        return PreviewResult(
            self._matched_count, head.n - start.n, start, is_complete, self._examples[-MAX_EXAMPLES:], started_ms
        )

    async def _read_back_from(self, head: Position) -> Position:
        """Read pages backwards from the head. Return the position before the oldest entry that was read."""
        client, clock = self._client, asyncio.get_running_loop().time
        floor, spent = client.request.position, 0.0
        end = head._replace(seq=head.seq + 1, n=head.n + 1)
        while end.n - 1 > floor.n and head.n - end.n < MAX_SCANNED_ENTRIES and spent < MAX_WORK_SECONDS:
            began = clock()
            page = [entry for entry in await self._hub.catchup_reader.read_before(end) if entry.position.n > floor.n]
            if not page or client.disconnect_reason is not None:
                break
            await self._add_page(page)
            end = page[0].position
            spent += clock() - began
        return floor if end.n - 1 <= floor.n else end.previous()

    async def _add_page(self, entries: list[Entry]) -> None:
        """Match the entries of a page, which are older than all before it, in slices."""
        found: list[Delivery] = []
        while entries and self._client.disconnect_reason is None:
            matched = await self._hub.catchup_reader.match(self._client, entries)
            found += matched.deliveries
            self._filters_changed = self._filters_changed or matched.notice is not None
            entries = [entry for entry in entries if entry.position > matched.end_position]
            await asyncio.sleep(0)
        self._matched_count += len(found)
        self._examples = [*found, *self._examples][-MAX_EXAMPLES:]
