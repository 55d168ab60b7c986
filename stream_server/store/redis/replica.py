"""One replica from which requests read: its state, and reads that it answers only if it has reached a position.

A position is an offset in the history of a primary: how many bytes of commands the primary has sent to its replicas.
The reply to INFO has it, on the primary and on each replica. It counts all writes, also those that add no entry to the
log. The id of the history changes with each failover, so another primary's replica cannot be mistaken for this one's.

```text
UNKNOWN --+                        +-- it lacks the position, for longer than BEHIND_SECONDS ---> BEHIND --+
          |                        |                                                                       |
          v                        +-- no answer within PATIENCE_SECONDS, or an error reply ----> AWAY ----+
   the probe finds that            |                                                                       |
   it has the primary's --> USABLE +-- it follows another primary, or is no replica ------------> FOREIGN -+
   position                                                                                                |
          ^                                                                                                |
          +------------------------------------------------------------------------------------------------+
```

With a cluster or Sentinels, a replica that is not usable for some seconds is left for another one of the same primary.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from stream_server.errors import ApiError
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.pipelined_connection import NoReply, find_instance
from stream_server.store.redis.protocol import pack_words

READ_POSITION = b"*2\r\n" + pack_words([b"INFO", b"replication"])
"""The command whose reply has the position of a server, as :func:`primary_position` and `Replica` read it."""

TRY_READ = b"*2\r\n" + pack_words([b"EXISTS", keys.NEVER.encode()])
"""Reads a key that never exists. A server that tells its position may refuse reads, and then it refuses this one.

The primary of a cluster refuses it also while the core's slot moves away. The replicas of a Redis refuse nothing then,
but have the keys no more that have moved.
"""

PATIENCE_SECONDS = 0.1
"""Longest wait in seconds for a replica. Then the primary is asked. A page takes a replica less than a millisecond."""

BEHIND_SECONDS = 0.05
"""Time in seconds for which a replica may refuse one read after the other before it is left as behind."""

PROBE_PAUSE_SECONDS = (0.01, 1.0)
"""First and longest pause in seconds before a replica that was left is asked again. The pause doubles in between."""

logger = logging.getLogger(__name__)


class ReplicationPosition(NamedTuple):
    """How far a server is: the id of the history that its primary writes, and the offset in bytes in this history."""

    history: bytes
    offset: int


class ReplicaState(Enum):
    """Whether requests read from a replica, and why not. The value is the reason in the log.

    Attributes:
        UNKNOWN: It has not been asked yet.
        USABLE: Requests read from it.
        BEHIND: It lacks writes, because its link to the primary is slow or cut, or because it is busy.
        AWAY: It did not answer in time, or answered with an error.
        FOREIGN: It has the history of another primary, or has become a primary itself.
    """

    UNKNOWN = "it was not asked yet"
    USABLE = "it has all writes"
    BEHIND = "it is behind"
    AWAY = "it does not answer"
    FOREIGN = "it is no replica of this primary"


class ReplicaAnswer(NamedTuple):
    """The replies of a replica to the commands of one call, and its position when it answered them."""

    position: ReplicationPosition
    replies: list[Any]


class Replica:
    """A replica, with the client that asks it.

    Attributes:
        client: The client of this server alone.
        state: Whether it may be asked. Only the probe, a task in the background, makes it usable.
        answered: How many calls it has answered.
        refused: How many calls went elsewhere, because it was behind or away when it was asked.
    """

    def __init__(
        self, name: str, client: RedisClient, ask_primary: Callable[[], Awaitable[ReplicationPosition | None]]
    ) -> None:
        """``name`` stands in the log, without a password. ``ask_primary`` returns the primary's position, if it can."""
        self._name, self.client, self._ask_primary = name, client, ask_primary
        self.state = ReplicaState.UNKNOWN
        self.answered = self.refused = 0
        self._behind_since: float | None = None
        self._probing: asyncio.Task[None] | None = None

    async def read(self, commands: Sequence[Command], floor: ReplicationPosition) -> ReplicaAnswer | None:
        """Run plain reads, and return the answer if the replica had reached ``floor`` before it ran them, else None."""
        found, position, replies = ReplicaState.AWAY, None, list[Any]()
        with suppress(ApiError, NoReply):
            replies = await self.client.run_pipeline((READ_POSITION, *commands), PATIENCE_SECONDS)
            if find_instance(replies, RedisError) is None:
                position = _replica_position(replies[0])
                found = _judge(position, floor)
        if position is not None and found is ReplicaState.USABLE:
            self.answered += 1
            self._behind_since = None
            return ReplicaAnswer(position, replies[1:])
        self.refused += 1
        now = time.monotonic()
        if found is ReplicaState.BEHIND and (self._behind_since is None or now - self._behind_since < BEHIND_SECONDS):
            self._behind_since = self._behind_since or now  # the next read may well find what this one has not
        elif self.state is ReplicaState.USABLE:
            self._enter(found)
            self.start_probe()
        return None

    def start_probe(self) -> None:
        """Ask the replica in the background until it is usable, unless that is being done."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe(), name="probe of a replica", context=Context())

    async def stop_probe(self) -> None:
        """End the probe. The client stays open."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])

    async def _probe(self) -> None:
        pause = PROBE_PAUSE_SECONDS[0]
        while True:
            floor = await self._ask_primary()
            if floor is not None:
                try:
                    info, _ = await self.client.execute(READ_POSITION, TRY_READ, max_seconds=PATIENCE_SECONDS)
                    self._enter(_judge(_replica_position(info), floor))
                except ApiError:
                    self._enter(ReplicaState.AWAY)
                if self.state is ReplicaState.USABLE:
                    return
                # A replica may stay behind for good. One whose PSYNC was refused says "up" and counts from its copy.
                if pause == PROBE_PAUSE_SECONDS[1]:
                    self.client.leave_replica()
            await asyncio.sleep(pause)
            pause = min(2 * pause, PROBE_PAUSE_SECONDS[1])

    def _enter(self, state: ReplicaState) -> None:
        """Change the state. The log tells of faults and their end, but not of a replica that is behind for a moment."""
        faults = (ReplicaState.AWAY, ReplicaState.FOREIGN)
        if state is not self.state and state in faults:
            logger.warning("%s is not read from: %s", self._name, state.value)
        elif state is ReplicaState.USABLE and self.state in faults:
            logger.warning("%s is read from again", self._name)
        self.state, self._behind_since = state, None


def count_usable(replicas: Collection[Replica]) -> int:
    """Return how many of the replicas may be asked now."""
    return sum(each.state is ReplicaState.USABLE for each in replicas)


def count_reads(replicas: Collection[Replica]) -> Mapping[str, int]:
    """Return how many calls the replicas have ``answered``, and how many they were asked in vain (``refused``)."""
    answered, refused = (sum(map(attrgetter(name), replicas)) for name in ("answered", "refused"))
    return {"answered": answered, "refused": refused}


def primary_position(info: bytes) -> ReplicationPosition | None:
    """Return the position of a primary from its reply to `READ_POSITION`, None if the server is no primary now."""
    history, offset = _field(info, b"\nmaster_replid:"), _field(info, b"\nmaster_repl_offset:")
    is_primary = _field(info, b"role:") == b"master" and history and offset
    return ReplicationPosition(history, int(offset)) if is_primary else None


def _replica_position(info: bytes) -> ReplicationPosition | None:
    """Return the position up to which a replica has run the commands of its primary, None if it is no replica.

    ``info`` is its reply to `READ_POSITION`.
    """
    history, offset = _field(info, b"\nmaster_replid:"), _field(info, b"\nslave_repl_offset:")
    return ReplicationPosition(history, int(offset)) if offset else None


def _judge(position: ReplicationPosition | None, floor: ReplicationPosition) -> ReplicaState:
    """Return the state of a server at ``position``, which is None if it is no replica. It must have reached ``floor``.

    Whether its link to the primary is up says nothing: a replica that has all writes is as good without it.
    """
    if position is None or position.history != floor.history:
        return ReplicaState.FOREIGN
    return ReplicaState.USABLE if position.offset >= floor.offset else ReplicaState.BEHIND


def _field(info: bytes, name: bytes) -> bytes:
    """Return the value behind ``name`` in a reply to INFO, or an empty text. A page reads three, so this is quick."""
    at = info.find(name)
    return b"" if at < 0 else info[at + len(name) : info.find(b"\r", at)]
