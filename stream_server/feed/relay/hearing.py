"""The relay's link to Redis: subscription, canary and reconnect, as those of a feed, but without a hub."""

import asyncio
from collections.abc import Callable
from contextlib import closing

from stream_server.errors import ApiError
from stream_server.events.position import LOG_START, Position
from stream_server.feed.link_health import LinkHealth, LinkLost
from stream_server.feed.relay.distribution import Distribution
from stream_server.store.log.event_log import EventLog
from stream_server.store.redis.message_delivery import Work
from stream_server.store.redis.replies import make_position


class Hearing:
    """Subscribes for all processes of a host. ``canary_seconds`` may change at any time."""

    def __init__(
        self, log: EventLog, distribution: Distribution, health: LinkHealth, canary_seconds: Callable[[], float]
    ) -> None:
        self._log = log
        self._distribution = distribution
        self._health = health
        self._canary_seconds = canary_seconds
        self._begun_at = LOG_START

    async def run(self) -> None:
        """Hear until cancelled. After each loss all links end, so that the processes hear for themselves meanwhile."""
        while True:
            reason: Exception = LinkLost("the subscription ended")
            try:
                await self._hear()
            except (ApiError, OSError, LinkLost) as error:
                reason = error
            self._distribution.end()
            self._log.replica_router.fall_back_to_primary()
            await asyncio.sleep(self._health.mark_lost(reason))

    async def _hear(self) -> None:
        with closing(await self._log.subscribe()) as subscription:
            self._distribution.newest = b""
            self._begun_at = await self._log.head()
            self._distribution.begin()
            self._health.mark_healthy()
            tasks = [
                asyncio.create_task(subscription.deliver(self._take, self._distribution.flush), name="relay: listen"),
                asyncio.create_task(self._run_canary(), name="relay: canary"),
            ]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            for task in done:
                task.result()

    def _take(self, message: bytes) -> Work | None:
        self._distribution.take(message)
        return None

    async def _run_canary(self) -> None:
        """Compare what was heard with the log. Raises `LinkLost` if the log has another head and nothing came."""
        while True:
            await asyncio.sleep(self._canary_seconds())
            heard, head = self._heard(), await self._log.head()
            if head != heard:
                await asyncio.sleep(self._canary_seconds() / 2)
                if self._heard() == heard:
                    message = f"no messages received: log head is {head.cursor}, last received is {heard.cursor}"
                    raise LinkLost(message)
            if await self._log.replica_router.try_replica(head.n):
                raise LinkLost("reading from the replica again")

    def _heard(self) -> Position:
        if not self._distribution.newest:
            return self._begun_at
        entry_id, n, _ = self._distribution.newest.split(b" ", 2)
        return make_position(entry_id, n)
