"""Timelines after a write: the first pass of the job that the write has left, in the same call.

The write is done and acknowledged whatever becomes of this: a pass that fails is done again by whoever claims the job.
"""

import logging
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from stream_server.store.jobs import Job, Jobs, Pass, pairs
from stream_server.store.passes import ENDED, Passes
from stream_server.store.scripts import GRACE_MS, Sizes

logger = logging.getLogger(__name__)


class Pair(NamedTuple):
    """An author's statuses enter (``merge``) or leave (``remove``) a ``home`` (of ``owner``) or a ``list``'s timeline.

    ``fence`` is of the job that the write has left for it, empty where it left none.
    """

    timelines: str
    owner: str
    author: str
    mode: str
    fence: bytes
    newest: Sequence[bytes]


class Syndication:
    """First passes; ``failures`` counts those that were left to a receiver because they failed."""

    def __init__(self, jobs: Jobs, passes: Passes, sizes: Sizes) -> None:
        self._jobs = jobs
        self._passes = passes
        self._sizes = sizes
        self.failures = 0

    async def spread(
        self, uid: str, status_id: str, fence: bytes, people: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """A status goes to its author's home and the first followers', and, if there are no more, to the lists."""
        await self._guarded(self._syndicate("spread", uid, status_id, fence, people, lists))

    async def clean(
        self, uid: str, status_id: str, fence: bytes, people: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """A status leaves its first readers; then, if there are no more, what hung on it goes."""
        await self._guarded(self._syndicate("clean", uid, status_id, fence, people, lists))

    async def pair(self, *wanted: Pair) -> None:
        """Timelines of pairs follow what was written, all in the same round trips."""
        passes = [
            (
                Job(f"{each.timelines}-{each.owner}-{each.author}", each.fence.decode()),
                Pass(each.mode, "", each.timelines, each.owner, each.author, "", [], list(each.newest), []),
            )
            for each in wanted
            if each.fence
        ]
        if passes:
            await self._guarded(self._passes.pair(passes, exact=False))

    async def _syndicate(
        self, mode: str, uid: str, status_id: str, fence: bytes, people: Sequence[bytes], lists: Sequence[bytes]
    ) -> None:
        """The first page, and what follows if it was the only one; more than that would keep the caller waiting."""
        job = Job(f"status-{status_id}", fence.decode())
        about = Pass(mode, "", "", status_id, uid, "", pairs(people), [], pairs(lists))
        alone = len(about.page) < self._sizes.pass_size
        word = await self._passes.syndicate(job, about, hold_ms=GRACE_MS if alone else 0)
        if alone and word not in ENDED:
            await self._passes.work(job)

    async def _guarded(self, work: Awaitable[object]) -> None:
        """The caller's write stands: what fails here is no failure of it."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the answer is that of the write, which is done
            self.failures += 1
            logger.warning("timelines are left to a receiver (%s: %s)", type(error).__name__, error)
