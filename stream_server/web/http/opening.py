"""The opening of one stream: what its code may wait for, and its slot among the streams that ask Redis.

Most streams find all that they need in this process. So the front door lets a stream begin without a task, in the
callback that received its bytes. Only a stream that must wait for something gets a task, and a slot among a limited
number of streams that ask Redis at the same time::

    AT_ONCE   --- ask() --->  MUST_ASK  --- a slot --->  ASKING
       |                         ^                          |
       v                         +------ give_back() -------+
    the answer, without a task                              v
                                                  the answer, from a task

Each function that a stream runs through must await :meth:`Opening.ask` before it awaits anything that takes time. A
test of the architecture reads all these functions. The front door aborts a stream that waits without having asked, and
logs it as a fault of the server.

A request that aiohttp has read runs in a task from the start. It begins in MUST_ASK. One with a body is FREE: its
sender may be slow, and the others must not wait for it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

from stream_server.runtime.fair_queue import Slot


class OpeningState(Enum):
    """The states of an opening."""

    AT_ONCE = "runs without a task, so it may wait for nothing"
    MUST_ASK = "needs a slot before it may wait for anything"
    ASKING = "holds a slot in a task, and may wait for anything"
    FREE = "may wait for anything without a slot"


class Opening:
    """The state of one opening.

    Attributes:
        state: The state at present.
        slot: The slot among those that ask, or None without one. `ask` waits until it is held, unless the front door
            has taken it already. FREE uses none.
    """

    state = OpeningState.AT_ONCE
    slot: Slot | None = None

    @classmethod
    def in_task(cls, slot: Slot | None, state: OpeningState) -> "Opening":
        """Return the opening of a request that runs in a task already. It needs a ``slot`` unless it is FREE."""
        opening = cls()
        opening.slot, opening.state = slot, state
        return opening

    async def ask(self) -> None:
        """Return when the code of the request may wait for Redis or for anything else.

        Raises Unavailable if the turn of the request does not come in time.
        """
        if self.state is OpeningState.AT_ONCE:
            self.state = OpeningState.MUST_ASK
            await asyncio.sleep(0)  # to the front door, which goes on in a task, and has set the slot then
        if self.state is OpeningState.MUST_ASK:
            assert self.slot is not None
            await self.slot.hold()
            self.state = OpeningState.ASKING

    def give_back(self, error: BaseException | None = None) -> None:
        """Give the slot to the next in line, if it is held. ``error`` is what ended the request, if anything.

        A request that goes on for long calls this before its end.
        """
        if self.slot is not None:
            self.slot.give_back(error)
        if self.state is OpeningState.ASKING:
            self.state = OpeningState.MUST_ASK

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """A context: give the slot back for the time of the block, and wait for another one after it."""
        self.give_back()
        yield
        self.state = OpeningState.MUST_ASK
        await self.ask()


FREE_OPENING = Opening.in_task(None, OpeningState.FREE)
"""For code that runs in a task without an opening of its own."""
