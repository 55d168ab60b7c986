"""The opening of one stream: what its code may wait for, and its place among the streams that ask Redis.

Most streams find all that they need in this process. So the front door lets a stream begin without a task, in the
callback that received its bytes. Only a stream that must wait for something gets a task, and a place among a limited
number of streams that ask Redis at the same time::

    AT_ONCE   --- ask() --->  MUST_ASK  --- a place --->  ASKING
       |                         ^                          |
       v                         +------ give_back() -------+
    the answer, without a task                              v
                                                  the answer, from a task

Each function that a stream runs through must await :meth:`Opening.ask` before it awaits anything that takes time. The
front door aborts a stream that waits without having asked, and logs it as a fault of the server.

A request that aiohttp has read runs in a task from the start. It begins in MUST_ASK. One with a body is FREE: its
sender may be slow, and the others must not wait for it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

from stream_server.runtime.fair_queue import Place


class OpeningState(Enum):
    """The states of an opening."""

    AT_ONCE = "runs without a task, so it may wait for nothing"
    MUST_ASK = "needs a place before it may wait for anything"
    ASKING = "holds a place in a task, and may wait for anything"
    FREE = "may wait for anything without a place"


class Opening:
    """The state of one opening.

    Attributes:
        state: The state at present.
        place: The place among those that ask. It is not held in MUST_ASK. None in AT_ONCE.
    """

    state = OpeningState.AT_ONCE
    place: Place | None = None

    @classmethod
    def in_task(cls, place: Place | None, state: OpeningState) -> "Opening":
        """Return the opening of a request that runs in a task already. ``place`` is None for FREE alone."""
        opening = cls()
        opening.place, opening.state = place, state
        return opening

    async def ask(self) -> None:
        """Return when the code of the request may wait for Redis or for anything else.

        Raises Unavailable if the turn of the request does not come in time.
        """
        if self.state is OpeningState.AT_ONCE:
            self.state = OpeningState.MUST_ASK
            await asyncio.sleep(0)  # to the front door, which goes on in a task, and has set the place then
        if self.state is OpeningState.MUST_ASK:
            assert self.place is not None
            await self.place.hold()
            self.state = OpeningState.ASKING

    def give_back(self, error: BaseException | None = None) -> None:
        """Give the place to the next in line, if it is held. ``error`` is what ended the request, if anything.

        A request that goes on for long calls this before its end.
        """
        if self.place is not None:
            self.place.give_back(error)
        if self.state is OpeningState.ASKING:
            self.state = OpeningState.MUST_ASK

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """A context: give the place back for the time of the block, and wait for another one after it."""
        self.give_back()
        yield
        self.state = OpeningState.MUST_ASK
        await self.ask()


FREE_OPENING = Opening.in_task(None, OpeningState.FREE)
"""For code that runs in a task without an opening of its own."""
