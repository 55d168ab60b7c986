"""The lanes: which calls share a connection to Redis, so that no call waits for a reply that Redis holds back.

Redis answers the commands of one connection in order. So a command that Redis holds back, or a reply of some MiB,
delays all commands behind it. This module is the one place that decides which calls may wait for each other.
"""

from collections.abc import Sequence
from enum import IntEnum

from stream_server.store import keys

Command = Sequence[str | bytes | int]
"""The words of a command, or a plain read in Redis' protocol as bytes (`packing.py`)."""


class Lane(IntEnum):
    """A class of calls that share a connection. A call takes the highest lane that one of its commands needs.

    Attributes:
        READ: Plain reads, also pages and what a stream needs to open. Redis answers them also while writes are paused.
        SCRIPT: Scripts without an idempotency key, such as those of jobs. CLIENT PAUSE holds them.
        WRITE: All other commands. A crowd of reads cannot delay them, and CLIENT PAUSE in a failover delays no reads.
        BULK: Calls with replies or commands of up to some MiB.
        BLOCKING: Calls that end with WAIT, which blocks its connection until the replicas have answered.
    """

    READ = 0
    SCRIPT = 1
    WRITE = 2
    BULK = 3
    BLOCKING = 4


MAX_CONNECTIONS = {Lane.READ: 1, Lane.SCRIPT: 1, Lane.WRITE: 1, Lane.BULK: 4, Lane.BLOCKING: 16}
"""Most connections of each lane. A lane opens one more only while all of its connections wait for replies."""

BULK_BYTES = 1 << 16
"""Size in bytes from which the commands of one call go on the lane BULK: the timelines of many followers."""

READ_NEWEST_ENTRY: Command = ("XREVRANGE", keys.LOG, "+", "-", "COUNT", 1)
"""Reads the last entry of the log. Its reply is short, other than that of a page of the log."""

_LANE_BY_COMMAND: dict[str | bytes | int, Lane] = {
    **dict.fromkeys(
        ("DBSIZE", "ECHO", "EXISTS", "GET", "HEXISTS", "HGET", "HGETALL", "HMGET", "HVALS", "INFO", "LRANGE", "PING",
         "PTTL", "SMISMEMBER", "TIME", "ZCARD", "ZCOUNT", "ZINTER", "ZMSCORE", "ZRANGE", "ZRANK", "ZREVRANK", "ZSCAN",
         "ZSCORE", "MULTI", "EXEC"), Lane.READ
    ),
    **dict.fromkeys(("MEMORY", "SCAN", "SSCAN", "XRANGE", "XREVRANGE"), Lane.BULK),
    "WAIT": Lane.BLOCKING,
    ord("*"): Lane.READ,  # the first byte of a packed command
}  # fmt: skip

PACKED = frozenset((bytes,))
"""The types of commands that are all packed reads. A set compares them quickly, because a page has thirty."""

_WRITE_KEY_PREFIX = keys.key_for("request", "")


def choose_lane(commands: Sequence[Command], packed_bytes: int) -> Lane:
    """Return the lane of a call with these commands, which take ``packed_bytes`` bytes on the wire."""
    if PACKED.issuperset(map(type, commands)) and packed_bytes < BULK_BYTES:
        return Lane.READ
    if len(commands) == 1 and packed_bytes < BULK_BYTES:
        return _lane_of(commands[0])
    if commands[-1][0] == "WAIT":
        return Lane.BLOCKING
    if packed_bytes >= BULK_BYTES:
        return Lane.BULK
    return max(map(_lane_of, commands))


def is_write(commands: Sequence[Command]) -> bool:
    """Return whether a call may change data by an idempotency key or without a script.

    Its first command shows it. A transaction may change data unless all its commands are plain reads.
    """
    if commands[0][0] == "MULTI":
        return any(_lane_of(command) is not Lane.READ for command in commands)
    return _lane_of(commands[0]) is Lane.WRITE


def _lane_of(command: Command) -> Lane:
    name = command[0]
    if name == "EVALSHA":
        key = command[3]
        return Lane.WRITE if isinstance(key, str) and key.startswith(_WRITE_KEY_PREFIX) else Lane.SCRIPT
    if command == READ_NEWEST_ENTRY:
        return Lane.READ
    return _LANE_BY_COMMAND.get(name, Lane.WRITE)
