"""A lease: the right of one process of all to do something, for a time. The process prolongs it while it works.

Redis decides who has a lease (``lua/lease.lua``). A process that dies gives nothing back, so its work stands still
until the time is over. What a process knows of its own lease:

    FREE --- hold ---> HELD --- the time ends, or another has it at the next hold ---> LOST
     ^                 |  ^                                                            |
     +----- rest ------+  +-------------------------- hold ----------------------------+

A process that is slow may go on with its work for a moment after it lost the lease. So the work itself must stay right
if two processes do it at the same time.
"""

import math
import secrets
import time
from collections.abc import Callable, Mapping
from enum import Enum

from stream_server.store import keys
from stream_server.store.redis.scripts import Scripts


class LeaseState(Enum):
    """What a process knows of its lease.

    Attributes:
        FREE: The process does not have the lease. Another process may have it.
        HELD: The process has the lease.
        LOST: The process had the lease, and did not prolong it in time.
    """

    FREE = "free"
    HELD = "held"
    LOST = "lost"


class Lease:
    """The lease ``name`` as this object takes it: two objects are two holders, also in one process.

    Attributes:
        kept: What the holders have stored beside the lease, by name. Up to date after :meth:`hold` has returned True.
        now_ms: Redis' time at that moment, in milliseconds since 1970.
    """

    def __init__(self, scripts: Scripts, name: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``monotonic`` returns seconds that never go back."""
        self.kept: Mapping[str, str] = {}
        self.now_ms = 0
        self._scripts = scripts
        self._name = name
        self._monotonic = monotonic
        self._holder = secrets.token_hex(8)
        self._ends: float | None = None

    @property
    def state(self) -> LeaseState:
        """The state of the lease. It turns from HELD to LOST by itself when the time is over."""
        if self._ends is None:
            return LeaseState.FREE
        return LeaseState.HELD if self._monotonic() < self._ends else LeaseState.LOST

    async def hold(self, seconds: float, **kept: str | int) -> bool:
        """Take or prolong the lease for ``seconds`` from now. Return False if another has it.

        ``kept`` are values to store beside the lease, for who has it next. Raises `Unavailable` if Redis does not
        answer; then the state is as before.
        """
        asked_at = self._monotonic()  # Redis counts from a later moment, so the process never believes too long
        if await self._ask(seconds, self._holder, kept):
            self._ends = asked_at + seconds
            return True
        if self._ends is not None:
            self._ends = -math.inf
        return False

    async def rest(self, seconds: float, **kept: str | int) -> bool:
        """Give the lease back, so that nobody has it for ``seconds``. Return False if another has it.

        Of processes that do not hold it, only one gets True in this time: it may do what is due once in an interval.
        """
        is_mine = await self._ask(seconds, "", kept)
        self._ends = None
        return is_mine

    async def _ask(self, seconds: float, next_holder: str, kept: Mapping[str, str | int]) -> bool:
        fields = [word for pair in kept.items() for word in pair]
        reply: list[bytes] = await self._scripts.call(
            "lease_hold", keys.META, name=self._name, holder=self._holder, next_holder=next_holder,
            ttl_ms=max(1, round(seconds * 1000)), rest=fields,
        )  # fmt: skip
        if not reply:
            return False
        now, *words = (word.decode() for word in reply)
        self.now_ms, self.kept = int(now), dict(zip(words[::2], words[1::2], strict=True))
        return True
