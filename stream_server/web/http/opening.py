"""The opening of one stream: what its code may wait for, and its slot among the streams that ask Redis.

Most streams find all that they need in this process. So the front door lets a stream begin without a task, in the
callback that received its bytes. Only a stream that must wait for something gets a task, and a slot among a limited
number of streams that ask Redis at the same time::

    AT_ONCE --- hold_slot() ---> QUEUED --- resume() ---> WITHOUT_SLOT --- hold_slot() ---> WITH_SLOT
       |                                                       ^                             |   |
       v                                                       +-------- give_back() --------+   v
    the answer, without a task                                              the answer, from a task

Each function that a stream runs through must await :meth:`Opening.hold_slot` before it awaits anything that takes time.
A test of the architecture reads all these functions. The front door aborts a stream that waits without a slot, and logs
it as a fault of the server.

A request that aiohttp has read runs in a task from the start. It begins in WITHOUT_SLOT. One with a body begins in
FREE: its sender may be slow, and the others must not wait for it. A poll takes a slot when its body has come.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum

from stream_server.runtime.fair_queue import Slot


class OpeningState(Enum):
    """The states of an opening."""

    AT_ONCE = "runs without a task, so it may wait for nothing"
    QUEUED = "must wait for something; it stands still in `hold_slot` until it gets a slot and a task"
    WITHOUT_SLOT = "runs in a task, and needs a slot before it may wait for anything"
    WITH_SLOT = "runs in a task with a slot, and may wait for anything"
    FREE = "runs in a task, and may wait for anything without a slot"


@dataclass(eq=False, slots=True)
class Opening:
    """The state of one opening.

    Attributes:
        state: The state at present.
        slot: The slot among those that ask Redis, held in WITH_SLOT. `hold_slot` waits for it, unless the front door
            has taken it already. None in AT_ONCE and QUEUED.
    """

    state: OpeningState = OpeningState.AT_ONCE
    slot: Slot | None = None

    async def hold_slot(self) -> None:
        """Return when the code of the request may wait for Redis or for anything else.

        Raises Unavailable if the turn of the request does not come in time.
        """
        if self.state is OpeningState.AT_ONCE:
            self.state = OpeningState.QUEUED
            # The front door runs the request by `run_to_wait`, which ends here. A task goes on after `resume`.
            await asyncio.sleep(0)
        if self.state is OpeningState.WITHOUT_SLOT:
            assert self.slot is not None
            await self.slot.hold()
            self.state = OpeningState.WITH_SLOT

    def resume(self, slot: Slot) -> None:
        """Note that a task goes on with the request, for which ``slot`` was taken or refused."""
        self.slot, self.state = slot, OpeningState.WITHOUT_SLOT

    def give_back(self, error: BaseException | None = None) -> None:
        """Give the slot to the next in line, if it is held. ``error`` is what ended the request, if anything.

        A request that goes on for long calls this before its end.
        """
        if self.slot is not None:
            self.slot.give_back(error)
        if self.state is OpeningState.WITH_SLOT:
            self.state = OpeningState.WITHOUT_SLOT

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """A context: give the slot back for the time of the block, and wait for another one after it."""
        self.give_back()
        yield
        self.state = OpeningState.WITHOUT_SLOT  # from here on also if it was FREE: the body has come
        await self.hold_slot()


FREE_OPENING = Opening(OpeningState.FREE)
"""For code that runs in a task without an opening of its own."""
