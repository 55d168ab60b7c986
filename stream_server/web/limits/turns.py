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

import math
import time
from collections import Counter
from collections.abc import Callable
from weakref import WeakValueDictionary

from stream_server.runtime.fair_queue import FairQueue, Place

MAX_RUNNING = 4
"""Most requests of one address that run at the same time in one process, while other addresses send requests too."""

SHARED_SECONDS = 1.0
"""Seconds that the limit lasts after another address has sent a request."""

MAX_WAIT_SECONDS = 2.0
"""Longest wait of a request for its turn."""


BUSY = "too many requests from your address are waiting"


class Turns:
    """Limits how many requests of one address run at the same time while other addresses send requests, too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: WeakValueDictionary[str, FairQueue] = WeakValueDictionary()  # each lives as long as its places
        self._latest_address = ""
        self._shared_until = -math.inf

    def turn(self, address: str) -> Place:
        """Return a context for a request that an address has sent. Entering it waits until the request may run.

        It raises `Unavailable` after :data:`MAX_WAIT_SECONDS`.
        """
        if address != self._latest_address:
            if self._latest_address:
                self._shared_until = self._clock() + SHARED_SECONDS
            self._latest_address = address
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = FairQueue(
                MAX_RUNNING, BUSY, MAX_WAIT_SECONDS, heeds_failures=False, has_more=self._is_alone
            )
        return Place(line)

    def _is_alone(self) -> bool:
        """Return whether only one address has sent requests lately, which is not limited then."""
        return self._clock() >= self._shared_until


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
