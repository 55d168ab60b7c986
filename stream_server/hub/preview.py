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
    """The number of recent entries that a rule would have matched, with examples.

    Attributes:
        matched_count: Number of matching entries up to ``end_position``.
        end_position: Last position scanned.
        is_complete: Whether all entries up to the head were scanned, without a gap and with unchanged filters.
        examples: The latest matching entries, in log order.
        started_ms: Time at which the preview began, in ms since 1970.
    """

    matched_count: int
    end_position: Position
    is_complete: bool
    examples: list[Delivery]
    started_ms: int


class RulePreview:
    """Counts the recent entries that a rule would have matched, in slices, so that other tasks get their turn."""

    def __init__(self, hub: Hub, request: SubscribeRequest) -> None:
        self._hub = hub
        self._matched_count = 0
        self._is_complete = True
        self._examples: deque[Delivery] = deque(maxlen=MAX_EXAMPLES)
        self._client = socketless_client(request)

    async def run(self) -> PreviewResult:
        """Scan from the request's position to the present head, for at most `MAX_WORK_SECONDS`.

        Raises `Unavailable` if the log cannot be read, if too many previews run, or if the hub disconnected the
        preview, for example because the user's permissions or saved rules may be out of date.
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
            await self._read_until(head)
        finally:
            hub.unregister(client)
            hub.preview_slots.release()
        if client.disconnect_reason is not None:  # its viewer or rules may be outdated
            raise Unavailable("The server is resynchronising; try again.", retry_after=1)
        is_complete = self._is_complete and client.position >= head
        return PreviewResult(self._matched_count, client.position, is_complete, [*self._examples], started_ms)

    async def _read_until(self, end_position: Position) -> None:
        client, spent, clock = self._client, 0.0, asyncio.get_running_loop().time
        while client.position < end_position and client.disconnect_reason is None and spent < MAX_WORK_SECONDS:
            began = clock()
            self._add_page(await self._hub.catchup_reader.read_page(client, lambda: end_position))
            spent += clock() - began
            await asyncio.sleep(0)

    def _add_page(self, page: CatchUpPage) -> None:
        if page.gap is not None and not self._client.accept_gap(page.gap):
            return
        self._matched_count += len(page.deliveries)
        self._examples.extend(page.deliveries)
        self._is_complete = self._is_complete and page.gap is None and page.notice is None
        self._client.position = page.end_position
