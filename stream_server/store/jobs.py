"""The queue of what must follow writes: claimed under a fence, done in passes, never forgotten.

A job is left by the script of the write itself (``lua/parts/jobs.lua``). Whoever claims one holds it for ten seconds
under a fence, a number that is used once; under an older one nothing is advanced any more. Every pass may be done
twice. These scripts keep no answers: what a lost one did, the next pass finds.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.link import Link
from stream_server.store.scripts import LEASE_MS, Scripts

MAX_FAILURES = 10
"""After so many failed passes in a row a job is parked, for a person to look at."""


class Job(NamedTuple):
    """A job, and the fence under which it is held."""

    id: str
    fence: str


class Pass(NamedTuple):
    """What one pass of a job is about.

    ``mode`` is spread, clean, merge, remove, refill or drop; ``timelines`` is home or list where the job is about
    one, whose owner is ``subject``. For spread and clean that is the status. ``page`` holds people, ``lists`` the
    lists that come along with the last of them, each with its score, and they begin behind ``score``; both together
    are never more than one page. ``newest`` holds ids of statuses, newest first.
    """

    mode: str
    phase: str
    timelines: str
    subject: str
    author: str
    score: str
    page: list[tuple[bytes, bytes]]
    newest: list[bytes]
    lists: list[tuple[bytes, bytes]]


class Step(NamedTuple):
    """How far a job has come: up to the member and score ``place`` of ``phase``; None where its phase is through.

    It is held ``hold_ms`` longer. ``looked`` is the version of :meth:`Jobs.gone` if that was asked, ``size`` how many
    statuses a timeline has after a removal.
    """

    job: Job
    phase: str = ""
    place: tuple[bytes, bytes] | None = None
    hold_ms: int = LEASE_MS
    looked: bytes = b""
    size: int | None = None


class Waiting(NamedTuple):
    """How many jobs there are: due by now, of all that are not parked, and parked."""

    due: int
    all: int
    parked: int


class Jobs:
    """The queue of one store."""

    def __init__(self, link: Link, scripts: Scripts) -> None:
        self._link = link
        self._scripts = scripts

    async def claim(self, most: int) -> list[Job]:
        """Up to ``most`` due jobs, held from now on; asks cheaply first, since there are mostly none."""
        if not await self._any_due():
            return []
        flat = await self._scripts.read("claim", keys.META, most)
        return [Job(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]

    async def begin(self, job: Job) -> Pass | None:
        """The next pass of a job; None if it is another's by now."""
        found = await self._scripts.read("begin", keys.META, *job)
        if not found:
            return None
        mode, phase, timelines, subject, author, score = (word.decode() for word in found[:6])
        return Pass(mode, phase, timelines, subject, author, score, pairs(found[6]), found[7], pairs(found[8]))

    async def advance(self, *steps: Step) -> list[str]:
        """Passes have done their writes; the word for each in one round trip: stale, moved, more, again or done."""
        words = await self._scripts.read_each("advance", keys.META, [_arguments(step) for step in steps])
        return [word.decode() for word in words]

    async def sweep(self, job: Job) -> str:
        """Take away a page of what hung on a deleted status or list: stale, more, again, done, or bare for a list."""
        return await self._word("sweep", job)

    async def fail(self, job: Job) -> bool:
        """A pass has failed: it comes again after a pause; gives whether it was parked instead."""
        return await self._word("fail", job, MAX_FAILURES) == "parked"

    async def gone(self, about: Pass) -> tuple[bytes, list[bytes], list[bytes]]:
        """The author's version now, and what people and lists of a spread's page should not have the status, now."""
        ids = [member for member, _ in (*about.page, *about.lists)]
        version, people, lists = await self._scripts.read(
            "gone", keys.META, about.subject, about.author, len(about.page), *ids
        )
        return version, people, lists

    async def strangers(self, timelines: str, owner: str, ids: Sequence[bytes]) -> list[bytes]:
        """Those of these statuses that do not belong on this timeline, by the truth of this moment."""
        if not ids:
            return []
        found: list[bytes] = await self._scripts.read("strangers", keys.META, timelines, owner, *ids)
        return found

    async def refill(self, timelines: str, owner: str) -> None:
        """Leave a job that fills a timeline anew and takes out what does not belong there."""
        await self._scripts.read("refill", keys.META, timelines, owner)

    async def waiting(self) -> Waiting:
        """How much there is to do."""
        clock, all_, parked = await self._link.ask(("TIME",), ("ZCARD", _DUE), ("ZCARD", _PARKED))
        (due,) = await self._link.ask(("ZCOUNT", _DUE, "-inf", _ms(clock)))
        return Waiting(due, all_, parked)

    async def parked(self, most: int = 1000) -> list[str]:
        """The jobs that failed too often, longest ago first."""
        (found,) = await self._link.ask(("ZRANGE", _PARKED, 0, most - 1))
        return [job.decode() for job in found]

    async def unpark(self, job: str) -> bool:
        """Give a parked job another chance; gives whether it was parked."""
        return bool(await self._scripts.read("unpark", keys.META, job))

    async def _any_due(self) -> bool:
        clock, first = await self._link.ask(("TIME",), ("ZRANGE", _DUE, 0, 0, "WITHSCORES"))
        return bool(first) and int(first[1]) <= _ms(clock)

    async def _word(self, verb: str, job: Job, *arguments: str | bytes | int) -> str:
        word: bytes = await self._scripts.read(verb, keys.META, *job, *arguments)
        return word.decode()


_DUE, _PARKED = keys.named("due"), keys.named("parked")


def pairs(flat: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Members with their scores, as Redis gives them one after the other."""
    return [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


def _arguments(step: Step) -> tuple[str | bytes | int, ...]:
    """What ``lua/advance.lua`` takes, in its order."""
    member, score = step.place or (b"", b"")
    size = "" if step.size is None else step.size
    return *step.job, step.phase, score, member, int(step.place is None), step.hold_ms, step.looked, size


def _ms(clock: Sequence[bytes]) -> int:
    return int(clock[0]) * 1000 + int(clock[1]) // 1000
