"""The commands of one call to a Redis Cluster, and what follows when a node refuses some of them.

While slots move, a node names the node to ask instead: MOVED for good, ASK for this time, after an ASKING. The commands
of one key keep their order. So if one is refused, the later ones of its key are sent again behind it, even if the node
has run them, because the key may have come to this node between the two.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from redis.exceptions import AskError, MovedError, ResponseError, TryAgainError

from stream_server.store.redis.guided_connection import HostPort
from stream_server.store.redis.lanes import Command

ASKING: Command = ("ASKING",)
"""Lets a node that receives a slot run the next command on it, although another node still owns the slot."""

UNKNOWN_HOST = "?"
"""What a node says in place of a host that it does not know. Its port without a host means the same host."""


class Target(NamedTuple):
    """Where a command goes: a node, and whether ASKING goes before the command."""

    node: HostPort
    asking: bool = False


class Batch:
    """The commands of one call and their replies.

    Attributes:
        commands: The commands. The second word of each is its only key.
        replies: The reply of each command, None until it has one.
    """

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = commands
        self.replies: list[Any] = [None] * len(commands)

    def packet(self, target: Target, indexes: Sequence[int]) -> list[Command]:
        """Return what is sent to ``target`` for the commands at these indexes."""
        commands = [self.commands[index] for index in indexes]
        return [each for command in commands for each in (ASKING, command)] if target.asking else commands

    def take_replies(self, target: Target, indexes: Sequence[int], replies: Sequence[Any]) -> None:
        """Keep the replies to a :meth:`packet`."""
        for index, reply in zip(indexes, replies[1::2] if target.asking else replies, strict=True):
            self.replies[index] = reply

    def fail(self, indexes: Iterable[int], error: Exception) -> None:
        """Let ``error`` be the reply of these commands."""
        for index in indexes:
            self.replies[index] = error

    def find_refused(self, sent: Mapping[Target, Sequence[int]]) -> Mapping[Target, list[int]]:
        """Return those of the commands ``sent`` that must go elsewhere or again, by their next target, in order."""
        refused = defaultdict[Target, list[int]](list)
        for target, indexes in sent.items():
            next_of_key: dict[str | bytes | int, Target] = {}
            for index in indexes:
                reply = self.replies[index]
                if not next_of_key and not isinstance(reply, ResponseError):
                    continue  # nearly always, so this is short
                key = self.commands[index][1]
                following = next_of_key.get(key) or _following_target(target, reply)
                if following is not None:
                    next_of_key[key] = following
                    refused[following].append(index)
        return refused


def next_target(target: Target, refusal: AskError) -> Target:
    """Return the node that ``target`` names in MOVED or ASK. Without a known host, this is ``target`` itself."""
    host, port = refusal.node_addr
    if host == UNKNOWN_HOST:
        return target
    return Target((host or target.node[0], port), asking=not isinstance(refusal, MovedError))


def _following_target(target: Target, reply: Any) -> Target | None:
    """Return where a command goes that got this reply from ``target``, or None if the reply is final."""
    if isinstance(reply, AskError):
        return next_target(target, reply)
    return target if isinstance(reply, TryAgainError) else None
