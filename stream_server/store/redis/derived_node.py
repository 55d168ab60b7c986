"""One node of a Redis Cluster with derived data: its client, and whether it answers.

A node that is dead or frozen must not make each call wait for its timeout. So the first call that fails, or waits long,
makes this process send PING. Without an answer all calls fail at once until PING is answered.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

from redis.exceptions import RedisError, ResponseError

from stream_server.errors import Unavailable
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.guided_connection import HostPort
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.pipelined_connection import NoReply
from stream_server.store.redis.refusals import unavailable_error

PING_PAUSE_SECONDS = 0.25
"""Seconds between two questions to a node that does not answer."""

SUSPECT_SHARE = 0.3
"""Share of the timeout after which a call that waits makes this process send PING, and for which PING may wait.

Both together end before the timeout, so the first calls do not wait for all of it.
"""

SILENCE_ERRORS = (NoReply, Unavailable, RedisError, OSError)
"""Errors of calls to a node that does not answer. An error reply is an answer."""

logger = logging.getLogger(__name__)


class DerivedNode:
    """A node and its client, which the node makes anew after it was away.

    Attributes:
        client: The client of the node.
        is_away: Whether calls fail at once, because the node does not answer.
        was_listed: Whether the table of the cluster has named it as a primary.
    """

    def __init__(
        self, address: HostPort, make_client: Callable[[], RedisClient], on_return: Callable[[], None]
    ) -> None:
        """``on_return`` is called when the node answers again."""
        self.address = address
        self.client = make_client()
        self.is_away = self.was_listed = self._is_closed = False
        self._make_client = make_client
        self._on_return = on_return
        self._probing: asyncio.Task[None] | None = None

    async def send(self, commands: Sequence[Command], deadline: float) -> list[Any]:
        """Send commands as `RedisClient.send` does. Raises `Unavailable` if they are not all answered."""
        with self.watched():
            try:
                return await self.client.send(commands, deadline)
            except NoReply as lost:
                raise unavailable_error() from lost

    def watched(self) -> "Watch":
        """Return a context for one call of the node. Raises `Unavailable` at once while the node is away."""
        if self.is_away:
            self.suspect()  # it goes on if it was stopped by an error
            raise unavailable_error()
        return Watch(self)

    def suspect(self) -> None:
        """Find out whether the node answers, unless that is being done."""
        if self._is_closed:
            return
        if self._probing is None or self._probing.done():
            name = "probe of a Redis node"
            self._probing = asyncio.create_task(self._probe(), name=name, context=Context())
            self._probing.add_done_callback(_log_failure)

    async def close(self) -> None:
        """Close the connections, and stop to look for the node."""
        self._is_closed = True
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])
        await self.client.close()

    async def _probe(self) -> None:
        """Ask until the node answers. Calls that wait for a silent node fail."""
        while not await self._answers():
            if not self.is_away:
                self.is_away = True
                logger.warning("the Redis node %s:%d does not answer; requests for its keys fail", *self.address)
                silent, self.client = self.client, self._make_client()
                await silent.close()
            await asyncio.sleep(PING_PAUSE_SECONDS)
        if self.is_away:
            self.is_away = False
            logger.warning("the Redis node %s:%d answers again", *self.address)
            self._on_return()

    async def _answers(self) -> bool:
        deadline = time.monotonic() + SUSPECT_SHARE * self.client.timeout_seconds
        try:
            await self.client.send((("PING",),), deadline)
        except (Unavailable, NoReply):
            return False
        return True


class Watch:
    """A context in which one call waits for a node. If that takes long or fails, the node is suspected.

    A generator would cost each call twice as much.
    """

    __slots__ = ("_alarm", "_node")

    def __init__(self, node: DerivedNode) -> None:
        self._node = node

    def __enter__(self) -> None:
        seconds = SUSPECT_SHARE * self._node.client.timeout_seconds
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._node.suspect)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        self._alarm.cancel()
        if isinstance(error, SILENCE_ERRORS) and not isinstance(error, ResponseError):
            self._node.suspect()


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the probe of a Redis node failed", exc_info=error)
