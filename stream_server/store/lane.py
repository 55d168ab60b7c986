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

WIDTH = 42
"""So many of the crowd ask at once; half as many connections more are there for who writes."""

STEPS = 4
"""A stream that begins asks so often: who it is, where its cursor stands, what its user may see, the saved rules."""

PATIENCE_SECONDS = 20.0
"""The longest wait for a turn: clients give up soon after, and come back anyway."""

AWAY_SECONDS = 3.0
"""When nobody was answered for so long while others wait, Redis is away: then nobody waits to be told so later."""


class Lane:
    """The turns of one process."""

    def __init__(self, width: int = WIDTH) -> None:
        self._free = width
        self._answered_at = 0.0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = count()

    @asynccontextmanager
    async def turn(self, asked: int) -> AsyncIterator[None]:
        """While inside it is the turn of one who has ``asked`` so often before.

        Raises Unavailable if that takes long, or while nobody is answered.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(asked)
        try:
            yield
            self._answered_at = asyncio.get_running_loop().time()
        except Exception:
            self._look()
            raise
        finally:
            self._pass_on()

    def _look(self) -> None:
        """One is late in a crowd, or all are."""
        if asyncio.get_running_loop().time() - self._answered_at >= AWAY_SECONDS:
            for _, _, turn in self._waiting:
                if not turn.done():
                    message = "the data store cannot be reached; nothing was written"
                    turn.set_exception(Unavailable(message, retry_after=1))
            self._waiting.clear()

    async def _wait(self, asked: int) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if not self._waiting:
            self._answered_at = loop.time()  # nobody was there to be answered before
        heappush(self._waiting, (-asked, next(self._tickets), turn))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await turn
        except TimeoutError:
            self._give_back(turn)
            message = "too many streams begin at once; nothing was written"
            raise Unavailable(message, retry_after=1) from None
        except asyncio.CancelledError:
            self._give_back(turn)
            raise

    def _give_back(self, turn: asyncio.Future[None]) -> None:
        """Who gives up may have been given its turn at that very moment."""
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Place:
    """One request's place in a lane."""

    __slots__ = ("_asked", "_lane")

    def __init__(self, lane: Lane) -> None:
        self._lane: Lane | None = lane
        self._asked = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """While inside it is its turn to ask; at once for what the request began and left behind."""
        if self._lane is None:
            yield
            return
        begun = self._asked if self._asked < STEPS else 0  # who asks on and on comes behind those who begin
        async with self._lane.turn(begun):
            self._asked += 1
            yield

    def leave(self) -> None:
        """The request is over; what it began goes its own way."""
        self._lane = None


_CURRENT: ContextVar[Place | None] = ContextVar("lane", default=None)


def current() -> Place | None:
    """That of the request that is being answered; None for all that is no crowd."""
    return _CURRENT.get()


@contextmanager
def along(lane: Lane) -> Iterator[None]:
    """All that is asked of Redis in here goes along this lane."""
    place = Place(lane)
    token = _CURRENT.set(place)
    try:
        yield
    finally:
        place.leave()
        _CURRENT.reset(token)
