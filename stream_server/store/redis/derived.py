"""The interface to derived data: one Redis that has all keys, or the nodes of a Redis Cluster.

The truth is on one shard and its link is :class:`~stream_server.store.redis.client.RedisClient`. Derived data (see
`store/keys.py`) may be on any shard. On one Redis both links are the same object, so the interface costs nothing there.
A caller gives commands of one key each, and must be able to repeat all of them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from stream_server.store.redis.guided_connection import HostPort
from stream_server.store.redis.lanes import Command

if TYPE_CHECKING:
    from stream_server.store.redis.client import RedisClient

Result = TypeVar("Result")


class DerivedRedis(Protocol):
    """Runs commands on derived data. The second word of each command is its only key.

    Commands of one key run in their order. Commands of several keys may run in any order.
    """

    @property
    def primaries(self) -> Sequence["RedisClient"]:
        """The servers that together have all keys, for a scan. With a cluster, one may have the keys of the truth."""
        ...

    @property
    def unreachable_nodes(self) -> Sequence[HostPort]:
        """The servers that do not answer. Commands for their keys fail at once until they do."""
        ...

    @property
    def nodes_returned(self) -> int:
        """How many times a server that did not answer came back, or another one took its place."""
        ...

    @property
    def follow_ups(self) -> Mapping[str, int]:
        """How many commands were sent again, by the refusal of the server: ``moved``, ``ask``, ``tryagain``."""
        ...

    async def execute(self, *commands: Command) -> list[Any]:
        """Run commands and return their replies in order. Raises the API error of one that failed.

        The others have run nevertheless, unless their servers failed too.
        """
        ...

    async def execute_each(self, *commands: Command) -> list[Any]:
        """Run commands and return their replies in order. An `ApiError` stands in the place of each that failed.

        It is `Unavailable` if the server of the key did not answer or takes no writes now.
        """
        ...

    async def use_server_of(self, key: str, use: Callable[["RedisClient"], Awaitable[Result]]) -> Result:
        """Return the result of ``use`` for the client of the server that has a key. ``use`` may be called twice.

        ``use`` lets the errors of redis-py and OSError through. Raises `Unavailable` in their place.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
