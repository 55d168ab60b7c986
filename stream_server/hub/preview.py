"""What a subscription would have matched of late: the same reading as a stream's that catches up, and counted."""

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
"""So long one preview waits for its turn behind others."""

MAX_WORK_SECONDS = 1.0
"""Reading and matching of one preview; it ends where it has come by then."""

MAX_EXAMPLES = 10
"""The latest of what matched are kept."""


class PreviewResult(NamedTuple):
    """``matched_count`` of all entries up to ``end_position``, of which ``examples`` are the latest, in log order.

    ``is_complete`` says that nothing of what was asked for is missing; ``started_ms`` is when the head was looked at.
    """

    matched_count: int
    end_position: Position
    is_complete: bool
    examples: list[Delivery]
    started_ms: int


class RulePreview:
    """Reads from a position to the head for one who asks, in slices that let everybody else go on."""

    def __init__(self, hub: Hub, request: SubscribeRequest) -> None:
        self._hub = hub
        self._matched_count = 0
        self._is_complete = True
        self._examples: deque[Delivery] = deque(maxlen=MAX_EXAMPLES)
        self._client = socketless_client(request, _ignore_wake)

    async def run(self) -> PreviewResult:
        """Up to the head as it is when its turn comes, or for so long.

        Raises errors.Unavailable while the log cannot be read, and where too many others ask for the same.
        """
        try:
            async with asyncio.timeout(MAX_QUEUE_SECONDS):
                await self._hub.preview_slots.acquire()
        except TimeoutError:
            raise Unavailable("many others ask for previews; try again", retry_after=5) from None
        try:
            return await self._run_admitted()
        finally:
            self._hub.preview_slots.release()

    async def _run_admitted(self) -> PreviewResult:
        hub, member = self._hub, self._client
        head, began_ms = hub.head, hub.now_ms()
        hub.register(member)
        try:
            await self._read_until(head)
        finally:
            hub.unregister(member)
        if member.disconnect_reason is not None:  # matched by sets that may be wrong by now
            raise Unavailable("the streams of this server begin anew; try again", retry_after=1)
        whole = self._is_complete and member.position >= head
        return PreviewResult(self._matched_count, member.position, whole, [*self._examples], began_ms)

    async def _read_until(self, end_position: Position) -> None:
        member, spent, clock = self._client, 0.0, asyncio.get_running_loop().time
        while member.position < end_position and member.disconnect_reason is None and spent < MAX_WORK_SECONDS:
            began = clock()
            self._add_page(await self._hub.catchup_reader.read_page(member, lambda: end_position))
            spent += clock() - began
            await asyncio.sleep(0)

    def _add_page(self, page: CatchUpPage) -> None:
        self._matched_count += len(page.deliveries)
        self._examples.extend(page.deliveries)
        self._is_complete = self._is_complete and page.gap is None and page.notice is None
        self._client.position = page.end_position


def _ignore_wake() -> None:
    """Nobody waits: the end is looked for between two pages."""
