"""What decides whether Redis can take writes: its memory and its replicas."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from redis.exceptions import ResponseError

from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.pipelined_connection import NoReply
from stream_server.store.redis.refusals import unavailable_error
from stream_server.store.redis.replies import parse_info

MAX_REPLICA_LAG_SECONDS = 5
"""Seconds without a word from a replica, which speaks once a second, after which it does not count as connected."""

_REPLICA = re.compile(r"slave\d+")
_REPLICA_STATE = re.compile(r"state=online,.*\blag=(\d+)")


class RedisState(NamedTuple):
    """Bytes that Redis uses and may use (its ``maxmemory``, else its machine's memory), and its number of replicas.

    ``limit_bytes`` is 0 if Redis tells neither.
    """

    used_bytes: int = 0
    limit_bytes: int = 0
    replicas: int = 0

    @property
    def used_share(self) -> float:
        """The share of its memory limit that Redis uses. 0 if its limit is unknown or it has none."""
        return self.used_bytes / self.limit_bytes if self.limit_bytes else 0.0


class RedisStateReader:
    """Asks the primary Redis for its state."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def read(self) -> RedisState:
        """Return the state of the primary. Raises `ApiError` if Redis does not answer, or forbids INFO."""
        memory, replication = await self._redis.execute(("INFO", "memory"), ("INFO", "replication"))
        return parse_state(parse_info(memory) | parse_info(replication))


async def find_write_refusal(redis: RedisClient) -> str:
    """Return what Redis says to a write that changes nothing, if it refuses it; else an empty text.

    Redis judges a command before it looks for the key, which never exists. Raises `ApiError` if it does not answer.
    """
    probe = ("SET", keys.key_for("request", "doctor"), "", "XX")
    try:
        (reply,) = await redis.run_pipeline([probe], redis.timeout_seconds)
    except NoReply as lost:
        raise unavailable_error() from lost
    return str(reply) if isinstance(reply, ResponseError) else ""


def parse_state(info: Mapping[str, str]) -> RedisState:
    """Return the state of the Redis that answered INFO with these fields."""
    limit = int(info.get("maxmemory", 0)) or int(info.get("total_system_memory", 0))
    return RedisState(int(info.get("used_memory", 0)), limit, count_replicas(info))


def count_replicas(info: Mapping[str, str]) -> int:
    """Return how many replicas have the data and answered lately, by ``INFO replication`` of their primary.

    If a hosted Redis tells only the number of connected replicas, this number is returned.
    """
    rows = [value for name, value in info.items() if _REPLICA.fullmatch(name)]
    if not rows:
        return int(info.get("connected_slaves", 0))
    states = map(_REPLICA_STATE.search, rows)
    return sum(state is not None and int(state[1]) <= MAX_REPLICA_LAG_SECONDS for state in states)
