"""A lease: the right of one process of all to do something, for a time. The process prolongs it while it works.

Redis decides who has a lease (``lua/lease.lua``). A process that dies gives nothing back, so its work stands still
until the time is over. What a lease is in Redis:

    free --- hold ---> held by one process --- rest ---> resting: nobody gets it
     ^                          |                           |
     +---- the time is over ----+---------------------------+

A process that is slow may go on with its work for a moment after it lost the lease. So the work itself must stay right
if two processes do it at the same time.
"""

import secrets
from collections.abc import Mapping

from stream_server.store import keys
from stream_server.store.redis.scripts import ScriptRunner


class Lease:
    """The lease ``name`` as this object takes it: two objects are two holders, also in one process.

    Attributes:
        kept: What the holders have stored beside the lease, by name. Up to date after a call that returned True.
        now_ms: Redis' time at that moment, in milliseconds since 1970.
    """

    def __init__(self, scripts: ScriptRunner, name: str) -> None:
        self.kept: Mapping[str, str] = {}
        self.now_ms = 0
        self._scripts = scripts
        self._name = name
        self._holder = secrets.token_hex(8)

    async def hold(self, seconds: float, **kept: str | int) -> bool:
        """Take or prolong the lease for ``seconds`` from now. Return False if another has it, or if it rests.

        ``kept`` are values to store beside the lease, for who has it next. Raises `Unavailable` if Redis does not
        answer.
        """
        return await self._ask(seconds, self._holder, kept)

    async def rest(self, seconds: float, **kept: str | int) -> bool:
        """Give the lease back, so that nobody has it for ``seconds``. Return False if another has it, or if it rests.

        Of processes that do not hold it, only one gets True in this time: it may do what is due once in an interval.
        ``kept`` and errors are as of :meth:`hold`.
        """
        return await self._ask(seconds, "", kept)

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
