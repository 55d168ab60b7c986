"""The preview of a rule: how many recent entries it would have matched. It reads like a stream that catches up."""

import asyncio
from collections import deque
from typing import NamedTuple

from stream_server.errors import Unavailable
from stream_server.events.position import Position
from stream_server.hub.catchup.reader import CatchUpPage
from stream_server.hub.client import SubscribeRequest, socketless_client
from stream_server.hub.delivery import Delivery
from stream_server.hub.hub import Hub

MAX_QUEUE_SECONDS = 5.0
"""Longest time in seconds that a preview waits for others to finish."""

MAX_WORK_SECONDS = 1.0
"""Longest time in seconds of reading and matching. The preview then ends at the position it has reached."""

MAX_EXAMPLES = 10
"""Number of matching entries that are kept, the latest ones."""


class PreviewResult(NamedTuple):
    """The result of a preview.

    Attributes:
        matched_count: Number of matching entries up to ``end_position``.
        end_position: Last position scanned.
        is_complete: Whether every requested entry was scanned with the same filters.
        examples: The latest matching entries, in log order.
        started_ms: Time at which the head was read, in ms since 1970.
    """

    matched_count: int
    end_position: Position
    is_complete: bool
    examples: list[Delivery]
    started_ms: int


class RulePreview:
    """Reads from a position to the head in slices, so that other tasks get their turn between them."""

    def __init__(self, hub: Hub, request: SubscribeRequest) -> None:
        self._hub = hub
        self._matched_count = 0
        self._is_complete = True
        self._examples: deque[Delivery] = deque(maxlen=MAX_EXAMPLES)
        self._client = socketless_client(request, _ignore_wake)

    async def run(self) -> PreviewResult:
        """Scan up to the head at the start of the scan, for at most `MAX_WORK_SECONDS`.

        Raises `Unavailable` if the log cannot be read, if too many previews run, and if the client's viewer or rules
        became outdated meanwhile.
        """
        try:
            async with asyncio.timeout(MAX_QUEUE_SECONDS):
                await self._hub.preview_slots.acquire()
        except TimeoutError:
            raise Unavailable("Too many previews are running; try again.", retry_after=5) from None
        try:
            return await self._run_admitted()
        finally:
            self._hub.preview_slots.release()

    async def _run_admitted(self) -> PreviewResult:
        """Scan, once the preview has one of the slots."""
        hub, client = self._hub, self._client
        head, started_ms = hub.head, hub.now_ms()
        hub.register(client)
        try:
            await self._read_until(head)
        finally:
            hub.unregister(client)
        if client.disconnect_reason is not None:  # its viewer or rules may be outdated
            raise Unavailable("The server is resynchronising; try again.", retry_after=1)
        is_complete = self._is_complete and client.position >= head
        return PreviewResult(self._matched_count, client.position, is_complete, [*self._examples], started_ms)

    async def _read_until(self, end_position: Position) -> None:
        """Read page by page until ``end_position``, the end of the client, or the time limit."""
        client, spent, clock = self._client, 0.0, asyncio.get_running_loop().time
        while client.position < end_position and client.disconnect_reason is None and spent < MAX_WORK_SECONDS:
            began = clock()
            self._add_page(await self._hub.catchup_reader.read_page(client, lambda: end_position))
            spent += clock() - began
            await asyncio.sleep(0)

    def _add_page(self, page: CatchUpPage) -> None:
        """Count the matches of a page."""
        if page.gap is not None and not self._client.accept_gap(page.gap):
            return
        self._matched_count += len(page.deliveries)
        self._examples.extend(page.deliveries)
        self._is_complete = self._is_complete and page.gap is None and page.notice is None
        self._client.position = page.end_position


def _ignore_wake() -> None:
    """Do nothing: the preview checks between two pages whether its client was disconnected."""
