"""A limited number of things happen at once, and the others wait in the order in which they came.

After a restart ten thousand streams open together. If all asked Redis at once, it would need longer for their questions
than the timeout of each, and most would fail. So a limited number opens at once, and their timeouts begin when they do.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Self

from stream_server.errors import Unavailable

MAX_WAIT_SECONDS = 20.0
"""Longest wait in seconds for a place. Clients give up soon after that, and they try again anyway."""


DOWN_AFTER_SECONDS = 3.0
"""Seconds without a success after which Redis counts as down. All who wait then fail at once."""


class FairQueue:
    """Limits how many may do something at the same time. The others wait for a place, in the order of their arrival."""

    def __init__(self, places: int, busy_message: str) -> None:
        """``busy_message`` tells a client that it has waited for too long."""
        self._free = places
        self._failing_since: float | None = None
        self._busy_message = busy_message
        self._waiting: deque[asyncio.Future[None] | Callable[[Place], bool]] = deque()

    @property
    def _is_down(self) -> bool:
        """Whether all have failed for a while, because Redis does not answer. Then few try, and the others fail."""
        since = self._failing_since
        return since is not None and time.monotonic() - since >= DOWN_AFTER_SECONDS

    def place(self) -> "Place":
        """Return a context that holds a place. Entering it waits for one, and raises Unavailable after 20 seconds."""
        return Place(self)

    def take_now(self) -> "Place | None":
        """Return a place that is held, or None if the caller must wait.

        While Redis does not answer, the place may be one that is not held, which fails when it is entered.
        """
        place = Place(self)
        if self._free > 0 and (not self._waiting or self._is_down):
            self._free -= 1
            place.is_held = True
            return place
        return place if self._is_down else None

    def begin_in_turn(self, begin: Callable[["Place"], bool]) -> None:
        """Call ``begin`` with a place when its turn has come. ``begin`` returns whether it uses the place."""
        self._waiting.append(begin)

    def _begin(self, begin: Callable[["Place"], bool]) -> None:
        self._free -= 1
        place = Place(self)
        place.is_held = True
        if not begin(place) and place.is_held:
            place.is_held = False
            self._free += 1

    async def take(self) -> None:
        """Wait for a place. The caller must give it back."""
        if self._free > 0 and (not self._waiting or self._is_down):
            self._free -= 1
            return
        if self._is_down:
            raise Unavailable(self._busy_message, retry_after=1)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give_back()  # the turn came in the same moment
            if isinstance(error, TimeoutError):
                raise Unavailable(self._busy_message, retry_after=1) from None
            raise

    def give_back(self, error: BaseException | None = None) -> None:
        """Give a place back, so that the next in line gets it. ``error`` is what its holder raised, if anything."""
        self._free += 1
        if not isinstance(error, Unavailable):
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = time.monotonic()
        if self._is_down:
            self._let_all_fail()
        while self._waiting and self._free:
            turn = self._waiting.popleft()
            if not isinstance(turn, asyncio.Future):
                self._begin(turn)
            elif not turn.done():
                self._free -= 1
                turn.set_result(None)

    def _let_all_fail(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            if not isinstance(turn, asyncio.Future):
                turn(Place(self))
            elif not turn.done():
                turn.set_exception(Unavailable(self._busy_message, retry_after=1))


class Place:
    """A place in a :class:`FairQueue`, held in an ``async with`` block. ``is_held`` is whether it is taken."""

    __slots__ = ("_queue", "is_held")

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self.is_held = False

    async def __aenter__(self) -> Self:
        if not self.is_held:
            await self._queue.take()
            self.is_held = True
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.give_back(error)

    def give_back(self, error: BaseException | None = None) -> None:
        """Give the place back before the end of the block, because the rest may take long."""
        if self.is_held:
            self.is_held = False
            self._queue.give_back(error)
