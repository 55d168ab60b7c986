"""The client of a primary with replicas: requests read from a replica what the primary would answer alike.

A page is thirty commands, and one primary must not answer all pages of a site. So a request that only reads asks the
primary one short question: what is your position? Then it reads from a replica that has reached this position. The
command at the head of each pipeline tells where the replica is. If it is behind, away or foreign, the primary answers.

So a read sees every write that was acknowledged before the read began, by whichever process, as if the primary had
answered. No note of a user's writes is needed, and nothing that a block hides is shown after the block was answered.

What a request reads later is never older than what it read before: texts are judged by facts that are not older than
they. So each replica must have reached the position of the previous answer, and after one call of the primary, whose
position is not known, the primary answers the rest of the request.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from contextvars import Context, ContextVar
from typing import Any

from redis.exceptions import RedisError

from stream_server.errors import Unavailable
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command, Lane, choose_lane
from stream_server.store.redis.pipelined_connection import NoReply, find_instance
from stream_server.store.redis.protocol import EXEC, MULTI
from stream_server.store.redis.replica import (
    PATIENCE_SECONDS,
    READ_POSITION,
    TRY_READ,
    Replica,
    ReplicaState,
    ReplicationPosition,
    primary_position,
)

MAX_ATTEMPTS = 2
"""Most replicas that one call asks, or most times that it asks the same. The second time, a busy one has caught up."""


class RequestReads:
    """The reads of one request that only reads, up to now.

    Attributes:
        floor: The position that the next answer must have reached. None before the first question.
        replica: The replica that has answered last.
        is_at_primary: Whether the primary answers the rest of the request.
    """

    __slots__ = ("floor", "is_at_primary", "replica")

    def __init__(self) -> None:
        self.floor: ReplicationPosition | None = None
        self.replica: Replica | None = None
        self.is_at_primary = False


_READS: ContextVar[RequestReads | None] = ContextVar("reads of a request", default=None)
"""The reads of the current request, None for a request that writes and outside of a request."""


def begin_reads() -> None:
    """Let the present request, which only reads, read from replicas. It must have a context of its own."""
    _READS.set(RequestReads())


class ReplicatedClient(RedisClient):
    """The client of a primary, whose plain reads of a request may be answered by a replica.

    Attributes:
        replicas: The replicas, in the order of the setting.
    """

    def __init__(self, url: str, timeout_seconds: float, replica_urls: Sequence[str]) -> None:
        """Make an unconnected client. In a cluster, all share one table of slots."""
        super().__init__(url, timeout_seconds)
        self.replicas = [
            Replica(
                f"replica {number} of redis_read",
                RedisClient(each, timeout_seconds, replica=True, topology=self.topology),
                self._ask_position,
            )
            for number, each in enumerate(replica_urls, 1)
        ]
        self._position_question = (READ_POSITION,) if self.topology is None else (READ_POSITION, TRY_READ)
        self._turn = 0
        self._asking: list[asyncio.Future[ReplicationPosition | None]] = []
        self._question: asyncio.Task[None] | None = None

    async def execute(self, *commands: Command, max_seconds: float = math.inf) -> list[Any]:
        """Run commands as `RedisClient.execute` does. A replica may answer those of a request that only reads."""
        found = await self._ask_replicas(commands)
        return await super().execute(*commands, max_seconds=max_seconds) if found is None else found

    async def execute_at_once(self, *commands: Command) -> list[Any]:
        """Run reads as `RedisClient.execute_at_once` does. A replica may answer those of a request that only reads."""
        if len(commands) > 1:
            found = await self._ask_replicas((MULTI, *commands, EXEC))
            if found and isinstance(found[-1], list) and find_instance(found[-1], RedisError) is None:
                return found[-1]
        return await super().execute_at_once(*commands)

    async def run_pipeline(self, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        """Ask the primary, which then answers the rest of the request. See `RedisClient.run_pipeline`."""
        reads = _READS.get()
        if reads is not None:
            reads.is_at_primary = True
        return await super().run_pipeline(commands, timeout_seconds)

    async def close(self) -> None:
        """Close all connections to the primary and to the replicas."""
        for replica in self.replicas:
            await replica.stop_probe()
            await replica.client.close()
        await super().close()

    async def _ask_replicas(self, commands: Sequence[Command]) -> list[Any] | None:
        """Return the replies of a replica to plain reads of the present request, or None if the primary must answer."""
        reads = _READS.get()
        if reads is None or reads.is_at_primary or choose_lane(commands, 0) is not Lane.READ:
            return None
        for _ in range(MAX_ATTEMPTS):
            replica = self._choose(reads.replica)
            if replica is None or self.remaining_seconds < PATIENCE_SECONDS:
                return None
            if reads.floor is None:
                reads.floor = await self._share_question()
            if reads.floor is None:
                return None
            answer = await replica.read(commands, reads.floor)
            if answer is not None:
                reads.replica, reads.floor = replica, max(answer.position, reads.floor)
                return answer.replies
        return None

    def _choose(self, preferred: Replica | None) -> Replica | None:
        """Return a usable replica, the preferred one or the next in turn. Ask in the background how new ones are."""
        if preferred is not None and preferred.state is ReplicaState.USABLE:
            return preferred
        for replica in self.replicas:
            if replica.state is ReplicaState.UNKNOWN:
                replica.start_probe()
        usable = [replica for replica in self.replicas if replica.state is ReplicaState.USABLE]
        self._turn += 1
        return usable[self._turn % len(usable)] if usable else None

    async def _share_question(self) -> ReplicationPosition | None:
        """Return the primary's position, by one question for all requests that wait for it.

        The question is sent after this call, because the answer to an earlier one might lack a write that was answered
        since then. None stands for no answer before the time of the request is over.
        """
        loop, start, seconds = asyncio.get_running_loop(), time.monotonic(), self.remaining_seconds
        answer: asyncio.Future[ReplicationPosition | None] = loop.create_future()
        self._asking.append(answer)
        if self._question is None or self._question.done():  # without the timeout of this request: others share it
            self._question = loop.create_task(self._answer_all(), name="position of the primary", context=Context())
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            return None
        finally:
            budget = timeout_budget.CURRENT.get()
            if budget is not None:
                budget.charge(time.monotonic() - start, 1)

    async def _answer_all(self) -> None:
        """Ask one question after the other, each for all requests that wait when it is sent."""
        while self._asking:
            asking, self._asking = self._asking, []
            position = await self._ask_position()
            for answer in asking:
                if not answer.done():
                    answer.set_result(position)

    async def _ask_position(self) -> ReplicationPosition | None:
        """Return the primary's position at this moment, or None if it does not answer or is no primary now.

        None also stands for the primary of a cluster that does not own all of the core's slot, or no more.
        """
        try:  # not by `run_pipeline`, which asks the new owner again what a former one refuses
            replies = await self.send(self._position_question, time.monotonic() + self.timeout_seconds)
        except (Unavailable, NoReply):
            return None
        return None if find_instance(replies, RedisError) is not None else primary_position(replies[0])
