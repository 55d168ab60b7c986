"""Limits the requests of one address that run at the same time in one process. The others wait for their turn.

The event loop serves requests in the order of their arrival. So without turns, an address that sends a hundred requests
at once would let every other client wait for all of them. Requests that run together cost less than one by one, so an
address has no such limit while it is the only one that sends requests. Streams, polls and previews take no turn: they
have limits of their own. A request gives its turn back while it waits for its body, so a slow sender does not delay the
other requests of its address.
"""

import math
import time
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
