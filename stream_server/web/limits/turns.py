"""Limits the requests of one address that run at the same time in one process. The others wait for their turn.

The event loop serves requests in the order of their arrival. So without turns, an address that sends a hundred requests
at once would let every other client wait for all of them. Requests that run together cost less than one by one, so an
address has no such limit while it is the only one that sends requests. Streams, polls and previews take no turn: they
have limits of their own. A request gives its turn back while it waits for its body, so a slow sender does not delay the
other requests of its address.

`RefusalDelay` delays the refusals of a client that does not slow down, so a flood of refused requests costs little. A
client that waits as `Retry-After` says never meets the delay. A connection carries one request at a time, so a flood
can send only as many requests in a second as its connections allow.
"""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from stream_server.errors import Unavailable

MAX_RUNNING = 4
"""Most requests of one address that run at the same time in one process, while other addresses send requests too."""

SHARED_SECONDS = 1.0
"""Seconds that the limit lasts after another address has sent a request."""

MAX_WAIT_SECONDS = 2.0
"""Longest wait of a request for its turn."""


class _Line:
    """The requests of one address: the number of those that run, and the waiting ones, the longest first."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


class Turns:
    """Limits how many requests of one address run at the same time while other addresses send requests, too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: dict[str, _Line] = {}
        self._latest_address = ""
        self._shared_until = -math.inf

    def take_free(self, address: str) -> bool:
        """Let a request run at once, if a turn is free.

        Return whether it may run; then the caller must :meth:`release` it.
        """
        line = self._enter(address)
        if not self._has_room(line):
            return False
        line.running += 1
        return True

    async def take(self, address: str) -> None:
        """Wait until the request of this address may run. Raises `Unavailable` after :data:`MAX_WAIT_SECONDS`.

        The caller must :meth:`release` the turn.
        """
        if self.take_free(address):
            return
        line = self._lines[address]
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting.append(turn)
        try:
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                await turn
        except TimeoutError:
            self._leave(address, line, turn)
            raise Unavailable("too many requests from your address are waiting", retry_after=1) from None
        except asyncio.CancelledError:
            self._leave(address, line, turn)
            raise

    def _enter(self, address: str) -> _Line:
        """Return the running and waiting requests of an address, which sends a new one.

        Note whether other addresses send requests too: only then the running requests of an address are limited.
        """
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = _Line()
        if address != self._latest_address:
            if self._latest_address:
                self._shared_until = self._clock() + SHARED_SECONDS
            self._latest_address = address
        return line

    def release(self, address: str) -> None:
        """Give the turn back. The requests of the address that have waited for longest get the turns that are free."""
        line = self._lines[address]
        line.running -= 1
        while line.waiting and self._has_room(line):
            turn = line.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                line.running += 1
        if not line.running:
            del self._lines[address]

    def _has_room(self, line: _Line) -> bool:
        return line.running < MAX_RUNNING or self._clock() >= self._shared_until

    def _leave(self, address: str, line: _Line, turn: "asyncio.Future[None]") -> None:
        """Remove a request that waits no longer. If it got its turn in the same moment, give the turn back."""
        if not turn.cancelled():
            self.release(address)
        elif turn in line.waiting:
            line.waiting.remove(turn)


class Turn:
    """A context manager of one request.

    Entering it waits until the request may run; leaving it lets another one run.
    """

    __slots__ = ("_address", "_is_held", "_turns")

    def __init__(self, turns: Turns, address: str) -> None:
        self._turns = turns
        self._address = address
        self._is_held = False

    async def __aenter__(self) -> None:
        if not self._turns.take_free(self._address):
            await self._turns.take(self._address)
        self._is_held = True

    async def __aexit__(self, *_: object) -> None:
        if self._is_held:
            self._give_back()

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """A context: give the turn back for the time of the block, and wait for another turn after it."""
        self._give_back()
        yield
        await self.__aenter__()

    def _give_back(self) -> None:
        self._is_held = False
        self._turns.release(self._address)


PROMPT_REFUSALS = 10
"""Refusals of one address in a second that are answered at once."""

DELAY_SECONDS = 0.5
"""Seconds that each further refusal in this second waits."""


class RefusalDelay:
    """Counts the refusals of each address in the current second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._second = 0
        self._counts: Counter[str] = Counter()

    def seconds(self, address: str) -> float:
        """Count one refusal of an address. Return the number of seconds by which to delay the answer."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._counts.clear()
        self._counts[address] += 1
        return DELAY_SECONDS if self._counts[address] > PROMPT_REFUSALS else 0.0
