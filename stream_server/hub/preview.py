"""What a subscription would have matched of late: the same reading as a stream's that catches up, and counted."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from stream_server.errors import Unavailable
from stream_server.events import Position
from stream_server.hub.member import Ask, without_socket
from stream_server.hub.reader import Page, Picked

if TYPE_CHECKING:
    from stream_server.hub.hub import Hub

WAIT_SECONDS = 5.0
"""So long one preview waits for its turn behind others."""

WORK_SECONDS = 1.0
"""Reading and matching of one preview; it ends where it has come by then."""

EXAMPLES = 10
"""The latest of what matched are kept."""


class Counted(NamedTuple):
    """``matched`` of all entries up to ``upto``, of which ``examples`` are the latest, in log order.

    ``whole`` says that nothing of what was asked for is missing; ``began_ms`` is when the head was looked at.
    """

    matched: int
    upto: Position
    whole: bool
    examples: list[Picked]
    began_ms: int


class Preview:
    """Reads from a position to the head for one who asks, in slices that let everybody else go on."""

    def __init__(self, hub: "Hub", ask: Ask) -> None:
        self._hub = hub
        self._matched = 0
        self._whole = True
        self._examples: deque[Picked] = deque(maxlen=EXAMPLES)
        self._member = without_socket(ask, _nobody)

    async def run(self) -> Counted:
        """Up to the head as it is when its turn comes, or for so long.

        Raises errors.Unavailable while the log cannot be read, and where too many others ask for the same.
        """
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._hub.previews.acquire()
        except TimeoutError:
            raise Unavailable("many others ask for previews; try again", retry_after=5) from None
        try:
            return await self._counted()
        finally:
            self._hub.previews.release()

    async def _counted(self) -> Counted:
        hub, member = self._hub, self._member
        head, began_ms = hub.head, hub.now_ms()
        hub.enter(member)
        try:
            await self._read(head)
        finally:
            hub.exit(member)
        if member.closing is not None:  # matched by sets that may be wrong by now
            raise Unavailable("the streams of this server begin anew; try again", retry_after=1)
        whole = self._whole and member.position >= head
        return Counted(self._matched, member.position, whole, [*self._examples], began_ms)

    async def _read(self, head: Position) -> None:
        member, spent, clock = self._member, 0.0, asyncio.get_running_loop().time
        while member.position < head and member.closing is None and spent < WORK_SECONDS:
            began = clock()
            self._take(await self._hub.reader.page(member, lambda: head))
            spent += clock() - began
            await asyncio.sleep(0)

    def _take(self, page: Page) -> None:
        self._matched += len(page.wanted)
        self._examples.extend(page.wanted)
        self._whole = self._whole and page.gap is None and page.notice is None
        self._member.position = page.upto


def _nobody() -> None:
    """Nobody waits: the end is looked for between two pages."""
