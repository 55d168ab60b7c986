"""Where this process hears and reads the log: a replica next to it while that keeps up, else the primary.

A replica whose own link is down goes on answering, from a log that stands still: it is only as good as its head is
near the primary's, which whoever listens has to compare. Leaving it is at once, coming back is later each time.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from stream_server.errors import ApiError
from stream_server.store import keys
from stream_server.store.redis import server_info
from stream_server.store.redis.client import RedisClient

RETRY_PAUSE_SECONDS = (5.0, 60.0)
"""How long a replica that failed is left alone: the first time and the longest, doubled in between.

Whoever was used for the longest pause without being left begins with the first one again.
"""

MAX_LAG_ENTRIES = 100
"""So many entries may a replica lack when it is used again: what was written since the question was asked."""


class ReplicaRouter:
    """``current`` is the one to hear and read from now; a replica is used when :meth:`try_replica` has looked at it, not before.

    ``replica`` None means that there is only the primary.
    """

    def __init__(
        self,
        primary: RedisClient,
        replica: RedisClient | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._primary = primary
        self._replica = replica
        self._monotonic = monotonic
        self._pause_seconds = RETRY_PAUSE_SECONDS[0]
        self._retry_at = self._replica_since = monotonic()
        self.current = primary

    @property
    def is_avoiding_replica(self) -> bool:
        """Whether there is a replica and it is not used at present."""
        return self._replica is not None and self.current is self._primary

    def fall_back_to_primary(self) -> None:
        """The replica was silent, behind or gone: the primary is used for a while. Nothing happens without one."""
        if self._replica is None or self.is_avoiding_replica:
            return
        if self._monotonic() - self._replica_since >= RETRY_PAUSE_SECONDS[1]:
            self._pause_seconds = RETRY_PAUSE_SECONDS[0]
        self.current = self._primary
        self._schedule_retry()

    async def try_replica(self, head_n: int) -> bool:
        """Whether the replica is used from now on: it was left alone for long enough and keeps up with ``head_n``.

        That is the number of the primary's last entry. False while there is none, or it is used already. Takes at
        most two time-outs of the slower link; never raises.
        """
        if self._replica is None or not self.is_avoiding_replica or self._monotonic() < self._retry_at:
            return False
        if not await self._is_caught_up(self._replica, head_n):
            self._schedule_retry()
            return False
        self.current, self._replica_since = self._replica, self._monotonic()
        return True

    async def close(self) -> None:
        """Close the connections to the replica; those to the primary are their owner's."""
        self.current = self._primary
        if self._replica is not None:
            replica, self._replica = self._replica, None
            await replica.close()

    def _schedule_retry(self) -> None:
        self._retry_at = self._monotonic() + self._pause_seconds
        self._pause_seconds = min(self._pause_seconds * 2, RETRY_PAUSE_SECONDS[1])

    async def _is_caught_up(self, replica: RedisClient, head_n: int) -> bool:
        """Whether it goes on with what the primary writes: the same history, its own link up, and near its end.

        A replica that was promoted has a history of its own from then on, and one of another primary never had ours:
        their numbers may look right. The primary itself passes, which does no harm.
        """
        asked = await asyncio.gather(
            self._primary.execute(("INFO", "replication")),
            replica.execute(("INFO", "replication"), ("HGET", keys.META, "n")),
            return_exceptions=True,  # both are waited for: nobody would own the other one
        )
        try:
            (ours,), (theirs, n) = map(_replies_or_raise, asked)
        except ApiError:
            return False
        found, history = server_info.parse_info(theirs), server_info.parse_info(ours).get("master_replid")
        linked = found.get("role") == "master" or found.get("master_link_status") == "up"
        same = history is not None and found.get("master_replid") == history
        return same and linked and int(n or 0) >= head_n - MAX_LAG_ENTRIES


def _replies_or_raise(answers: list[Any] | BaseException) -> list[Any]:
    if isinstance(answers, BaseException):
        raise answers
    return answers
