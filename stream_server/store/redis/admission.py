"""A crowd's way to Redis: so many ask at once, the others wait for their turn and not for an answer.

Ten thousand streams that come back together would each wait for a connection for longer than an answer may take, and
be refused, and the writes beside them too. Here the time-out begins with one's turn. Whoever has asked before goes
first: otherwise all of them would have asked once before the first of them is done.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from heapq import heappop, heappush
from itertools import count

from stream_server.errors import Unavailable

MAX_CONCURRENT = 42
"""So many of the crowd ask at once; half as many connections more are there for who writes."""

STREAM_OPEN_ROUND_TRIPS = 4
"""A stream that begins asks so often: who it is, where its cursor stands, what its user may see, the saved rules."""

MAX_QUEUE_SECONDS = 20.0
"""The longest wait for a turn: clients give up soon after, and come back anyway."""

REDIS_DOWN_AFTER_SECONDS = 3.0
"""When nobody was answered for so long while others wait, Redis is away: then nobody waits to be told so later."""


class ReadAdmission:
    """The turns of one process."""

    def __init__(self, max_concurrent: int = MAX_CONCURRENT) -> None:
        self._free_slots = max_concurrent
        self._last_reply_at = 0.0
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = count()

    @asynccontextmanager
    async def slot(self, prior_round_trips: int) -> AsyncIterator[None]:
        """While inside it is the turn of one who has ``prior_round_trips`` so often before.

        Raises Unavailable if that takes long, or while nobody is answered.
        """
        if self._free_slots:
            self._free_slots -= 1
        else:
            await self._wait_for_slot(prior_round_trips)
        try:
            yield
            self._last_reply_at = asyncio.get_running_loop().time()
        except Exception:
            self._fail_waiters_if_down()
            raise
        finally:
            self._grant_next_slot()

    def _fail_waiters_if_down(self) -> None:
        """One is late in a crowd, or all are."""
        if asyncio.get_running_loop().time() - self._last_reply_at >= REDIS_DOWN_AFTER_SECONDS:
            for _, _, turn in self._waiters:
                if not turn.done():
                    message = "the data store cannot be reached; nothing was written"
                    turn.set_exception(Unavailable(message, retry_after=1))
            self._waiters.clear()

    async def _wait_for_slot(self, prior_round_trips: int) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if not self._waiters:
            self._last_reply_at = loop.time()  # nobody was there to be answered before
        heappush(self._waiters, (-prior_round_trips, next(self._sequence), turn))
        try:
            async with asyncio.timeout(MAX_QUEUE_SECONDS):
                await turn
        except TimeoutError:
            self._return_slot(turn)
            message = "too many streams begin at once; nothing was written"
            raise Unavailable(message, retry_after=1) from None
        except asyncio.CancelledError:
            self._return_slot(turn)
            raise

    def _return_slot(self, waiter: asyncio.Future[None]) -> None:
        """Who gives up may have been given its turn at that very moment."""
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            self._grant_next_slot()

    def _grant_next_slot(self) -> None:
        while self._waiters:
            turn = heappop(self._waiters)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free_slots += 1


class RequestAdmission:
    """One request's place in a lane."""

    __slots__ = ("_admission", "_round_trips")

    def __init__(self, admission: ReadAdmission) -> None:
        self._admission: ReadAdmission | None = admission
        self._round_trips = 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """While inside it is its turn to ask; at once for what the request began and left behind."""
        if self._admission is None:
            yield
            return
        begun = (
            self._round_trips if self._round_trips < STREAM_OPEN_ROUND_TRIPS else 0
        )  # who asks on and on comes behind those who begin
        async with self._admission.slot(begun):
            self._round_trips += 1
            yield

    def detach(self) -> None:
        """The request is over; what it began goes its own way."""
        self._admission = None


_CURRENT: ContextVar[RequestAdmission | None] = ContextVar("lane", default=None)


def current_admission() -> RequestAdmission | None:
    """That of the request that is being answered; None for all that is no crowd."""
    return _CURRENT.get()


@contextmanager
def admit_through(admission: ReadAdmission) -> Iterator[None]:
    """All that is asked of Redis in here goes along this lane."""
    place = RequestAdmission(admission)
    token = _CURRENT.set(place)
    try:
        yield
    finally:
        place.detach()
        _CURRENT.reset(token)
