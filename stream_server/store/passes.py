"""What a pass of a job does: writes derived timelines by a page of the truth, then asks whether that still holds.

The order is always the same, and every step may be the last one of this process: a page of truth, the writes, and, when
all of them were answered well, :meth:`Jobs.advance`. It is not sent along with the writes: a full Redis refuses these
and may let a script through.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from stream_server.store import keys
from stream_server.store.jobs import Job, Jobs, Pass, Step
from stream_server.store.link import Command, Link
from stream_server.store.scripts import FOLLOWED, LEASE_MS, Sizes

BOTH = {"home": keys.home, "list": keys.timeline}
"""The key of a timeline by its kind."""

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
        (word,) = await self.pair([(job, about)], exact=True)
        return word

    async def syndicate(self, job: Job, about: Pass, *, hold_ms: int = LEASE_MS) -> str:
        """A status comes to, or goes from, a page of homes and lists, and the author's own home before the first."""
        timelines = _timelines([member for member, _ in about.page], [member for member, _ in about.lists])
        if not about.phase and not about.score:
            timelines.append(keys.home(about.author))
        await self._ask(self._syndication(about, timelines))
        step = self._behind(job, about, hold_ms)
        (word,) = await self._jobs.advance(step)
        if about.mode == "clean" or word not in {"moved", "stale"}:
            return word
        looked, people, lists = await self._jobs.gone(about)
        gone = _timelines(people, lists)
        await self._ask([("ZREM", key, about.subject) for key in gone])
        if gone or word == "stale":
            return word  # who came back meanwhile stands further down now: the page is read again
        (word,) = await self._jobs.advance(step._replace(looked=looked))
        return word

    async def pair(self, passes: Sequence[tuple[Job, Pass]], *, exact: bool) -> list[str]:
        """What authors wrote comes to timelines, or goes: all of it in one round trip, and then all the words.

        ``exact`` looks at the whole timelines then, since a pass that did not end may have left something there; so
        does a removal of more than the newest of a profile could name.
        """
        writes = [self._pairing(about) for _, about in passes]
        answers = iter(await self._ask([command for commands in writes for command in commands]))
        steps = []
        for (job, about), commands in zip(passes, writes, strict=True):
            told = list(islice(answers, len(commands)))
            if exact or (about.mode == "remove" and len(about.newest) >= self._sizes.timeline_max):
                await self._refill_if_strange(about)
            steps.append(Step(job, size=told[-1] if about.mode == "remove" else None))
        return await self._jobs.advance(*steps)

    async def _clear(self, job: Job, about: Pass) -> str:
        """What does not belong on a timeline goes, before it is filled: what went by mistake comes again so."""
        key = BOTH[about.timelines](about.subject)
        (ids,) = await self._ask([("ZRANGE", key, 0, -1)])
        strangers = await self._jobs.strangers(about.timelines, about.subject, ids)
        if strangers:
            await self._ask([("ZREM", key, *strangers)])
        (word,) = await self._jobs.advance(Step(job))
        return word

    async def _fill(self, job: Job, about: Pass) -> str:
        """The newest of a page of those followed, or on the list, come to the timeline."""
        await self._ask(self._merging(BOTH[about.timelines](about.subject), about.newest))
        full = len(about.page) >= FOLLOWED
        (word,) = await self._jobs.advance(Step(job, about.phase, about.page[-1]) if full else Step(job))
        return word

    async def _drop(self, job: Job, about: Pass) -> str:
        """A list is gone: first from its members, then its timeline, to which then nobody's statuses come any more."""
        word = await self._jobs.sweep(job)
        if word != "bare":
            return word
        await self._ask([("DEL", keys.timeline(about.subject))])
        (word,) = await self._jobs.advance(Step(job))
        return word

    def _behind(self, job: Job, about: Pass, hold_ms: int) -> Step:
        """Lists come along with the last followers, so that a page that is not full was the last one."""
        if len(about.page) + len(about.lists) < self._sizes.pass_size:
            return Step(job, hold_ms=hold_ms)
        if about.lists:
            return Step(job, "lists", about.lists[-1], hold_ms=hold_ms)
        return Step(job, "", about.page[-1], hold_ms=hold_ms)

    async def _refill_if_strange(self, about: Pass) -> None:
        """A timeline with anything on it that does not belong there is filled anew."""
        (ids,) = await self._ask([("ZRANGE", BOTH[about.timelines](about.subject), 0, -1)])
        if await self._jobs.strangers(about.timelines, about.subject, ids):
            await self._jobs.refill(about.timelines, about.subject)

    def _pairing(self, about: Pass) -> list[Command]:
        """What a pair writes; the last answer of a removal is how many statuses the timeline has left."""
        key = BOTH[about.timelines](about.subject)
        if about.mode == "merge":
            return self._merging(key, about.newest)
        removing: list[Command] = [("ZREM", key, *about.newest)] if about.newest else []
        return [*removing, ("ZCARD", key)]

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


def _timelines(people: Sequence[bytes], lists: Sequence[bytes]) -> list[str]:
    """The keys of their homes, and of these lists' timelines."""
    return [keys.home(uid.decode()) for uid in people] + [keys.timeline(each.decode()) for each in lists]
