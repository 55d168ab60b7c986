"""The watch of a Redis Cluster: a server is not ready while the core takes no writes, and tells what is set up wrongly.

One look at the core's owner is one command. A look at the whole cluster asks each primary, so it is made seldom.
"""

import asyncio
import logging
import random

from stream_server.store.redis.cluster_check import ClusterHealth

logger = logging.getLogger(__name__)

NOT_OWNED = "no node of the Redis Cluster serves the core now"
CORE_OPEN = "the core's slot of the Redis Cluster is being moved"

LOOK_SECONDS = (1.5, 2.5)
"""Shortest and longest interval in seconds between two looks at the core's owner. It is random, to spread servers."""

LOOKS_PER_CHECK = 15
"""Number of looks at the core's owner for each check of the whole cluster, which so comes every half minute."""


class ClusterWatch:
    """Watches the cluster of the store.

    Attributes:
        warnings: What was set up wrongly at the last check, each as one sentence.
    """

    def __init__(self, health: ClusterHealth, random_source: random.Random) -> None:
        self.warnings: tuple[str, ...] = ()
        self._health = health
        self._random = random_source
        self._is_core_open = False

    @property
    def fault(self) -> str:
        """Why nothing can be written now, or empty."""
        if not self._health.has_owner:
            return NOT_OWNED
        return CORE_OPEN if self._is_core_open else ""

    def detail(self) -> dict[str, object]:
        """Return the members for `/readyz`: ``warnings`` if there are any."""
        away = (f"{node} does not answer: its timelines cannot be read" for node in self._health.unreachable_nodes)
        warnings = (*self.warnings, *away)
        return {"warnings": warnings} if warnings else {}

    async def run(self) -> None:
        """Watch the cluster until cancelled. Without a cluster, only wait."""
        if not self._health.is_cluster:
            await asyncio.Event().wait()
        look = 0
        while True:
            await self.look()
            if look % LOOKS_PER_CHECK == 0:
                await self.check()
            look += 1
            await asyncio.sleep(self._random.uniform(*LOOK_SECONDS))

    async def look(self) -> None:
        """Check whether the slot of the core is open (MIGRATING or IMPORTING), and update `fault`."""
        was_open, self._is_core_open = self._is_core_open, await self._health.is_core_open()
        if self._is_core_open and not was_open:
            logger.error("%s, so nothing can be written: run `stream-server doctor`", CORE_OPEN)

    async def check(self) -> None:
        """Check the whole cluster, and update `warnings`. A new warning is logged once."""
        found = tuple(finding.sentence for finding in await self._health.find_faults())
        for sentence in found:
            if sentence not in self.warnings:
                logger.warning("Redis Cluster: %s", sentence)
        self.warnings = found
