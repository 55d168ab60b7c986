"""The commands of a call that a node of a cluster refused with MOVED, because another node owns the core's slot now.

A refused command did not run. So it may be sent again to the new owner, also if it has no idempotency key. The other
commands of the call must not: they ran.
"""

from collections.abc import Sequence
from typing import Any

from redis.exceptions import MovedError, ResponseError

from stream_server.store.redis.cluster_topology import CORE_SLOT
from stream_server.store.redis.guided_connection import HostPort
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.packing import MULTI

UNKNOWN_HOSTS = ("", "?")
"""Hosts in the place of one that the node does not know."""


def find_refused(commands: Sequence[Command], replies: Sequence[Any]) -> list[int]:
    """Return the indexes of the commands on the core's slot that were refused with MOVED, and so did not run.

    Of a transaction these are all commands, because it runs as a whole or not at all. A WAIT behind refused commands is
    among them, because it must follow them again.
    """
    refused = [index for index, reply in enumerate(replies) if _is_core_moved(reply)]
    if not refused or commands[0] == MULTI or commands[0][0] == "MULTI":
        return [*range(len(commands))] if refused else []
    return [*refused, len(commands) - 1] if commands[-1][0] == "WAIT" else refused


def named_owner(replies: Sequence[Any]) -> HostPort | None:
    """Return the node that the first refusal names as the owner of the slot, or None if it names no host."""
    owner = next((reply.node_addr for reply in replies if _is_core_moved(reply)), None)
    return None if owner is None or owner[0] in UNKNOWN_HOSTS else owner


def insert_replies(commands: Sequence[Command], replies: list[Any], refused: Sequence[int], again: list[Any]) -> None:
    """Put the replies of the repeated commands in the places of the refusals.

    If other commands ran before, their replicas count too: the reply of WAIT becomes the worse one of both.
    """
    has_wait = commands[-1][0] == "WAIT"
    ran_before = len(refused) < len(commands)
    for index, reply in zip(refused, again, strict=True):
        is_wait = has_wait and index == len(commands) - 1
        replies[index] = _worse(replies[index], reply) if is_wait and ran_before else reply


def _is_core_moved(reply: object) -> bool:
    return isinstance(reply, MovedError) and reply.slot_id == CORE_SLOT


def _worse(first: Any, second: Any) -> Any:
    """Return the reply of WAIT with fewer replicas. An error counts as none."""
    error = next((reply for reply in (first, second) if isinstance(reply, ResponseError)), None)
    return min(first, second) if error is None else error
