"""The server for log reads and the subscription: a nearby replica while it keeps up, otherwise the primary.

A replica that lost its primary still answers, but its log no longer grows. So the caller compares the replica's head
with the primary's. The router leaves a bad replica at once, and returns to it after a pause that doubles each time.

In a cluster messages do not come with the data of a replica, but by the bus of the cluster. So a replica may tell of
entries that it has not, for milliseconds or, if its link to the primary is cut, for ever.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from stream_server.errors import ApiError
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.protocol import parse_info

RETRY_PAUSE_SECONDS = (5.0, 60.0)
"""Shortest and longest pause in seconds before a failed replica is tried again. The pause doubles in between."""

MAX_LAG_ENTRIES = 100
"""Most entries that a replica may lack when it is used again: those written during the check."""


class ReplicaRouter:
    """Selects the Redis server for log reads and for the subscription to new entries. It starts with the primary.

    Attributes:
        current: The client of the selected server.
        is_in_cluster: Whether a message may come before the replica has the entry.
    """

    def __init__(
        self,
        primary: RedisClient,
        *replicas: RedisClient,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use the first of ``replicas``, and the next one when it fails. There may be none.

        ``monotonic`` returns seconds of a clock that never jumps.
        """
        self._primary = primary
        self._replicas = deque(replicas)
        self.is_in_cluster = primary.topology is not None
        self._monotonic = monotonic
        self._pause_seconds = RETRY_PAUSE_SECONDS[0]
        self._retry_at = self._replica_since = monotonic()
        self.current = primary

    @property
    def is_avoiding_replica(self) -> bool:
        """Whether log reads go to the primary although a replica exists."""
        return bool(self._replicas) and self.current is self._primary

    def fall_back_to_primary(self) -> None:
        """Select the primary until :meth:`try_replica` succeeds, because the replica failed or lacks entries."""
        if not self._replicas or self.is_avoiding_replica:
            return
        if self._monotonic() - self._replica_since >= RETRY_PAUSE_SECONDS[1]:  # it worked for a long time
            self._pause_seconds = RETRY_PAUSE_SECONDS[0]
        self.current = self._primary
        self._schedule_retry()

    async def try_replica(self, head_n: int) -> bool:
        """Select the replica again if it has been unused long enough and has nearly all entries up to ``head_n``.

        ``head_n`` is the number of the primary's last entry; the replica may lack `MAX_LAG_ENTRIES`. Returns whether
        the replica was selected. Raises no error of Redis, and takes at most twice the Redis timeout.
        """
        if not self.is_avoiding_replica or self._monotonic() < self._retry_at:
            return False
        replica = self._replicas[0]
        if not await self._is_caught_up(replica, head_n):
            replica.leave_replica()
            self._schedule_retry()
            return False
        self.current, self._replica_since = replica, self._monotonic()
        return True

    async def leave_if_behind(self, heard_n: int) -> None:
        """In a cluster, select the primary if the selected replica is behind or does not answer.

        It is behind if it lacks the entry with the number ``heard_n``, whose message came some time ago. Outside a
        cluster a message comes from the replica itself, so it has the entry. Raises no error of Redis.
        """
        if not self.is_in_cluster or self.current is self._primary:
            return
        try:
            (n,) = await self.current.execute(("HGET", keys.META, "n"))
            is_behind = int(n or 0) < heard_n
        except ApiError:
            is_behind = True
        if is_behind:
            self.fall_back_to_primary()

    async def close(self) -> None:
        """Select the primary, and close the connections to the replicas. The connections to the primary stay open."""
        self.current = self._primary
        while self._replicas:
            await self._replicas.pop().close()

    def _schedule_retry(self) -> None:
        """Try the next replica after a pause."""
        self._replicas.rotate(-1)
        self._retry_at = self._monotonic() + self._pause_seconds
        self._pause_seconds = min(self._pause_seconds * 2, RETRY_PAUSE_SECONDS[1])

    async def _is_caught_up(self, replica: RedisClient, head_n: int) -> bool:
        """Return whether ``replica`` is linked to this primary as a replica, and has nearly reached ``head_n``.

        The replication ids must be equal, because a replica of another primary may have the same entry numbers. If
        ``replica`` is the primary itself, the result is also True, which does no harm.
        """
        results = await asyncio.gather(
            self._primary.execute(("INFO", "replication")),
            replica.execute(("INFO", "replication"), ("HGET", keys.META, "n")),
            return_exceptions=True,  # otherwise one call would go on without an owner
        )
        try:
            (primary_info,), (replica_info, n) = map(_replies_or_raise, results)
        except ApiError:
            return False
        info, history = parse_info(replica_info), parse_info(primary_info).get("master_replid")
        is_linked = info.get("role") == "master" or info.get("master_link_status") == "up"
        is_same_history = history is not None and info.get("master_replid") == history
        return is_same_history and is_linked and int(n or 0) >= head_n - MAX_LAG_ENTRIES


def _replies_or_raise(result: list[Any] | BaseException) -> list[Any]:
    if isinstance(result, BaseException):
        raise result
    return result
