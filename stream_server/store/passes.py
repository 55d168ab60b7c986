"""What a pass of a job does: writes derived timelines by a page of the truth, then asks whether that still holds.

The order is always the same, and every step may be the last one of this process: a page of truth, the writes, and, when
all of them were answered well, :meth:`Jobs.advance`. It is not sent along with the writes: a full Redis refuses these
and may let a script through.
"""

from collections.abc import Sequence
from typing import Any

from stream_server.store import keys
from stream_server.store.jobs import LEASE_MS, Job, Jobs, Pass
from stream_server.store.link import Command, Link
from stream_server.store.scripts import Sizes

BOTH = {"home": keys.home, "list": keys.timeline}
"""The key of a timeline by its kind."""

FOLLOWED = 50
"""Users of one pass of a refill; the script says the same."""

ENDED = frozenset({"done", "again", "stale"})
"""Words after which there is nothing more to do now."""


class Passes:
    """Does the passes of jobs; the timelines are cut at ``sizes.timeline_max``."""

    def __init__(self, link: Link, jobs: Jobs, sizes: Sizes) -> None:
        self._link = link
        self._jobs = jobs
        self._sizes = sizes

    async def work(self, job: Job) -> str:
        """One whole pass of a claimed job: the word for what is next, see :meth:`Jobs.advance`."""
        about = await self._jobs.begin(job)
        if about is None:
            return "stale"
        if about.mode in {"spread", "clean"}:
            return await (self._jobs.sweep(job) if about.phase == "rest" else self.syndicate(job, about))
        if about.mode == "refill":
            return await (self._fill(job, about) if about.phase else self._clear(job, about))
        if about.mode == "drop":
            return await self._drop(job, about)
        return await self.pair(job, about, exact=True)

    async def syndicate(self, job: Job, about: Pass, *, hold_ms: int = LEASE_MS) -> str:
        """A status comes to, or goes from, a page of homes or lists, and the author's own home before the first."""
        key = keys.timeline if about.phase == "lists" else keys.home
        timelines = [key(member.decode()) for member, _ in about.page]
        if not about.phase and not about.score:
            timelines.append(keys.home(about.author))
        await self._ask(self._syndication(about, timelines))
        last = len(about.page) < self._sizes.pass_size
        place = about.page[-1] if about.page else None
        word = await self._jobs.advance(job, place, last=last, hold_ms=hold_ms)
        if about.mode == "clean" or word not in {"moved", "stale"}:
            return word
        looked, gone = await self._jobs.gone(about)
        await self._ask([("ZREM", key(member.decode()), about.subject) for member in gone])
        if gone or word == "stale":
            return word  # who came back meanwhile stands further down now: the page is read again
        return await self._jobs.advance(job, place, last=last, hold_ms=hold_ms, looked=looked)

    async def pair(self, job: Job, about: Pass, *, exact: bool) -> str:
        """What an author wrote comes to a timeline, or goes.

        ``exact`` looks at the whole timeline then, since a pass that did not end may have left something there; so
        does a removal of more than the newest of a profile could name.
        """
        key = BOTH[about.timelines](about.subject)
        size = None
        if about.mode == "merge":
            await self._ask(self._merging(key, about.newest))
        else:
            removing: list[Command] = [("ZREM", key, *about.newest)] if about.newest else []
            size = (await self._ask([*removing, ("ZCARD", key)]))[-1]
        if exact or (about.mode == "remove" and len(about.newest) >= self._sizes.timeline_max):
            (ids,) = await self._ask([("ZRANGE", key, 0, -1)])
            if await self._jobs.strangers(about.timelines, about.subject, ids):
                await self._jobs.refill(about.timelines, about.subject)
        return await self._jobs.advance(job, None, last=True, size=size)

    async def _clear(self, job: Job, about: Pass) -> str:
        """What does not belong on a timeline goes, before it is filled: what went by mistake comes again so."""
        key = BOTH[about.timelines](about.subject)
        (ids,) = await self._ask([("ZRANGE", key, 0, -1)])
        strangers = await self._jobs.strangers(about.timelines, about.subject, ids)
        if strangers:
            await self._ask([("ZREM", key, *strangers)])
        return await self._jobs.advance(job, None, last=True)

    async def _fill(self, job: Job, about: Pass) -> str:
        """The newest of a page of those followed, or on the list, come to the timeline."""
        await self._ask(self._merging(BOTH[about.timelines](about.subject), about.newest))
        last = len(about.page) < FOLLOWED
        return await self._jobs.advance(job, about.page[-1] if about.page else None, last=last)

    async def _drop(self, job: Job, about: Pass) -> str:
        """A list is gone: first from its members, then its timeline, to which then nobody's statuses come any more."""
        word = await self._jobs.sweep(job)
        if word != "bare":
            return word
        await self._ask([("DEL", keys.timeline(about.subject))])
        return await self._jobs.advance(job, None, last=True)

    def _syndication(self, about: Pass, timelines: Sequence[str]) -> list[Command]:
        if about.mode == "clean":
            return [("ZREM", key, about.subject) for key in timelines]
        adding: list[Command] = [("ZADD", key, about.subject, about.subject) for key in timelines]
        return adding + [self._cut(key) for key in timelines]

    def _merging(self, key: str, ids: Sequence[bytes]) -> list[Command]:
        if not ids:
            return []
        return [("ZADD", key, *(word for each in ids for word in (each, each))), self._cut(key)]

    def _cut(self, key: str) -> Command:
        return "ZREMRANGEBYRANK", key, 0, -(self._sizes.timeline_max + 1)

    async def _ask(self, commands: Sequence[Command]) -> list[Any]:
        """Derived data: any refusal raises, and the pass does not count."""
        return await self._link.ask(*commands) if commands else []
