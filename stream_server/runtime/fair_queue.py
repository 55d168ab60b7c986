"""A limited number of things happen at once, and the others wait in the order in which they came.

After a restart ten thousand streams open together. If all asked Redis at once, it would need longer for their questions
than the timeout of each, and most would fail. So a limited number opens at once, and their timeouts begin when they do.
A stream that waits has neither a task nor a request object. The queue has a function to begin it, and the connection
has the bytes of its request head, which are read when its turn has come.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from stream_server.errors import Unavailable

MAX_SLOT_WAIT_SECONDS = 20.0
"""Longest wait in seconds for a slot. Clients give up soon after that, and they try again anyway."""

DOWN_AFTER_SECONDS = 3.0
"""Seconds without a success after which Redis counts as down. All who wait then fail at once."""

MAX_REFUSED_AT_ONCE = 50
"""Most who are refused in one iteration of the event loop, because each refusal is an answer to a client."""


class FairQueue:
    """Limits how many may do something at the same time. The others wait for a slot, in the order of their arrival."""

    def __init__(
        self, slots: int, busy_message: str, max_wait_seconds: float = MAX_SLOT_WAIT_SECONDS,
        *, heeds_failures: bool = True, has_more: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """``busy_message`` tells a client that it has waited for longer than ``max_wait_seconds``.

        With ``heeds_failures``, all who wait fail when those with a slot have failed for a while: see `is_down`.
        ``has_more`` returns whether there are more slots than ``slots`` at present.
        """
        self.busy_message = busy_message
        self._free = slots
        self._max_wait_seconds = max_wait_seconds
        self._heeds_failures = heeds_failures
        self._has_more = has_more
        self._failing_since: float | None = None
        self._waiting: deque[tuple[float, Callable[[Slot], bool]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_down(self) -> bool:
        """Whether every holder of a slot has failed for a while, because Redis does not answer.

        Then only a few may try, and the others fail at once.
        """
        since = self._failing_since
        return since is not None and time.monotonic() - since >= DOWN_AFTER_SECONDS

    def slot(self) -> "Slot":
        """Return a context that holds a slot. Entering it waits for one, and raises Unavailable after the wait."""
        return Slot(self)

    def take(self) -> bool:
        """Take a slot if one is free and nobody waits. Return whether it was taken; then it must be given back."""
        if (self._free <= 0 and not self._has_more()) or (self._waiting and not self.is_down):
            return False
        self._free -= 1
        return True

    def take_now(self) -> "Slot | None":
        """Return a slot that is held, or None if the caller must wait.

        While Redis does not answer, the slot may be one that was refused, which fails when it is entered.
        """
        slot = Slot(self)
        slot.is_held = self.take()
        slot.is_refused = not slot.is_held and self.is_down
        return slot if slot.is_held or slot.is_refused else None

    def begin_in_turn(self, begin: Callable[["Slot"], bool]) -> None:
        """Call ``begin`` with a slot when its turn has come, or with a refused slot when it has waited for too long.

        ``begin`` returns whether it uses the slot.
        """
        loop = asyncio.get_running_loop()
        self._waiting.append((loop.time(), begin))
        if self._timer is None:
            self._timer = loop.call_later(self._max_wait_seconds, self._refuse_late)

    def give_back(self, error: BaseException | None = None) -> None:
        """Give a slot back, so that the next in line gets it. ``error`` is what its holder raised, if anything."""
        self._free += 1
        if not isinstance(error, Unavailable):
            self._failing_since = None
        elif self._failing_since is None and self._heeds_failures:
            self._failing_since = time.monotonic()
        if not self._waiting:
            return
        if self.is_down:
            self._refuse_late()
        while self._waiting and (self._free > 0 or self._has_more()):
            self._free -= 1
            slot = Slot(self)
            slot.is_held = True
            if not self._waiting.popleft()[1](slot) and slot.is_held:
                slot.is_held = False
                self._free += 1
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse_late(self) -> None:
        """Refuse those who have waited for too long, or all while nothing succeeds. Others have their turn between."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop, refused = asyncio.get_running_loop(), 0
        latest = math.inf if self.is_down else loop.time() - self._max_wait_seconds
        while self._waiting and self._waiting[0][0] <= latest and refused < MAX_REFUSED_AT_ONCE:
            slot = Slot(self)
            slot.is_refused = True
            self._waiting.popleft()[1](slot)
            refused += 1
        if self._waiting:
            next_at = self._waiting[0][0] + self._max_wait_seconds if refused < MAX_REFUSED_AT_ONCE else loop.time()
            self._timer = loop.call_at(next_at, self._refuse_late)


class Slot:
    """A slot in a :class:`FairQueue`, held in an ``async with`` block.

    Attributes:
        is_held: Whether it is taken.
        is_refused: Whether entering it raises Unavailable at once.
    """

    __slots__ = ("_queue", "is_held", "is_refused")

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self.is_held = self.is_refused = False

    async def hold(self) -> None:
        """Return when the slot is held. Raises Unavailable if it was refused, or does not come in time."""
        if not self.is_held:
            if self.is_refused or not (self._queue.take() or await self._wait()):
                raise Unavailable(self._queue.busy_message, retry_after=1)
            self.is_held = True

    async def __aenter__(self) -> Self:
        await self.hold()
        return self

    async def _wait(self) -> bool:
        """Wait for a slot and return whether it came."""
        if self._queue.is_down:
            return False
        turn: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()

        def begin(slot: Slot) -> bool:
            if turn.done():
                return False
            turn.set_result(slot)
            return True

        self._queue.begin_in_turn(begin)
        try:
            return (await turn).is_held
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                turn.result().give_back()  # the turn came in the same moment
            raise

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.give_back(error)

    def give_back(self, error: BaseException | None = None) -> None:
        """Give the slot back before the end of the block, because the rest may take long."""
        if self.is_held:
            self.is_held = False
            self._queue.give_back(error)

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """A context: give the slot back for the time of the block, and wait for another one after it."""
        self.give_back()
        yield
        await self.hold()
