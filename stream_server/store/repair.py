"""Looking everything over: counters against what they count, timelines against the truth, and what was left behind.

One walk over all keys, in bounded pages, with everything else going on beside it. So what looks wrong is looked at
twice, and what a job will see to is not wrong. Each mend is one script that looks once more in the same step, or a
refill, which is a job and does so too.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.jobs import Jobs
from stream_server.store.link import Link
from stream_server.store.passes import BOTH
from stream_server.store.scripts import FOLLOWED, Scripts

SCANNED = 500
"""Keys of one page of the walk."""

AGAIN_SECONDS = 0.5
"""What looks wrong on a timeline is looked at again after this time: a write may be on its way."""

ENOUGH = 0.75
"""A timeline that is shorter than this part of its length, and could be longer, is short."""

COUNTED = ("user", "status", "list", "group")
"""Kinds of hashes with counters."""

HUNG = ("likes", "comments", "replies", "reposts")
"""Kinds of sets that hang on a status."""


class Finding(NamedTuple):
    """Something that is not as it should be: counter, timeline, orphan or parked; which one; and a sentence."""

    kind: str
    subject: str
    sentence: str


class Page(NamedTuple):
    """The ids of one page of the walk by the name of their key's row, and how many keys were seen so far, of all."""

    ids: dict[str, list[str]]
    seen: int
    all: int


class Repair:
    """Looks one store over; with ``mend`` it also mends what it finds."""

    def __init__(self, link: Link, scripts: Scripts, jobs: Jobs) -> None:
        self._link = link
        self._scripts = scripts
        self._jobs = jobs

    async def turn(self, seconds: float) -> bool:
        """Whether it is one's turn: of all that ask, one gets it, once in so many seconds."""
        key = keys.named("repair")
        (taken,) = await self._link.ask(("SET", key, "1", "NX", "PX", max(1, round(seconds * 1000))))
        return taken is not None

    async def look(self, *, mend: bool, tell: Callable[[int, int], None] = lambda _seen, _all: None) -> list[Finding]:
        """All findings; ``tell`` hears of the keys that were seen, and how many there are. Raises Unavailable."""
        found = [Finding("parked", job, "failed too often") for job in await self._jobs.parked()]
        if mend:
            for finding in found:
                await self._jobs.unpark(finding.subject)
        async for page in self._walk():
            found += await self._page(page.ids, mend=mend)
            tell(page.seen, page.all)
        return found

    async def _walk(self) -> AsyncIterator[Page]:
        cursor, seen = b"0", 0
        while True:
            (cursor, names), all_ = await self._link.ask(("SCAN", cursor, "COUNT", SCANNED), ("DBSIZE",))
            seen += len(names)
            yield Page(_by_row(names), min(seen, all_), all_)
            if cursor == b"0":
                return

    async def _page(self, ids: dict[str, list[str]], *, mend: bool) -> list[Finding]:
        found = []
        for kind in COUNTED:
            found += await self._counters(kind, ids[kind], mend=mend)
        owners = [("home", uid) for uid in ids["user"]] + [("list", list_id) for list_id in ids["list"]]
        found += await self._timelines(owners, mend=mend)
        hung = sorted({status for kind in HUNG for status in ids[kind]})
        left = {"jobs": ids["job"], "statuses": hung, "users": ids["home"], "lists": ids["timeline"]}
        for kind, some in left.items():
            found += await self._orphans(kind, some, mend=mend)
        return found

    async def _counters(self, kind: str, ids: Sequence[str], *, mend: bool) -> list[Finding]:
        if not ids:
            return []
        wrong = await self._scripts.read("audit", keys.META, kind, *ids)
        found = []
        for subject, field, said, so in ([word.decode() for word in row] for row in wrong):
            found.append(Finding("counter", f"{kind} {subject}", f"{field} is {said or 'missing'}, should be {so}"))
            if mend:
                await self._scripts.read("recount", keys.META, kind, subject)
        return found

    async def _timelines(self, owners: Sequence[tuple[str, str]], *, mend: bool) -> list[Finding]:
        suspects = {owner: wrong for owner in owners if (wrong := await self._wrong(*owner))}
        if suspects:
            await asyncio.sleep(AGAIN_SECONDS)
        found = []
        for owner, wrong in suspects.items():
            found += await self._timeline(*owner, wrong & await self._wrong(*owner), mend=mend)
        return found

    async def _timeline(self, timelines: str, owner: str, wrong: set[bytes], *, mend: bool) -> list[Finding]:
        unexplained = await self._unexplained(timelines, owner, wrong)
        if not unexplained:
            return []
        if mend:
            await self._jobs.refill(timelines, owner)
        sentence = f"{len(unexplained)} statuses are on it, or missing, against the truth"
        return [Finding("timeline", f"{timelines} {owner}", sentence)]

    async def _wrong(self, timelines: str, owner: str) -> set[bytes]:
        """Ids that stand on a timeline and should not, or should and do not."""
        (ids,) = await self._link.ask(("ZRANGE", BOTH[timelines](owner), 0, -1))
        strangers = await self._jobs.strangers(timelines, owner, ids)
        expected = await self._expected(timelines, owner)
        longest = self._scripts.sizes.timeline_max
        # What is older than the oldest may have been cut off before the timeline grew shorter.
        floor = int(ids[0]) if len(ids) >= ENOUGH * longest else 0
        return set(strangers) | {each for each in expected if int(each) > floor} - set(ids)

    async def _expected(self, timelines: str, owner: str) -> list[bytes]:
        """The newest statuses that belong on a timeline, as many as it may hold."""
        newest: list[bytes] = []
        score, member = b"", b""
        while True:
            page, more = await self._scripts.read("newest", keys.META, timelines, owner, score, member)
            newest = sorted({*newest, *more}, key=int, reverse=True)[: self._scripts.sizes.timeline_max]
            if len(page) < 2 * FOLLOWED:
                return newest
            member, score = page[-2:]

    async def _unexplained(self, timelines: str, owner: str, ids: set[bytes]) -> list[bytes]:
        if not ids:
            return []
        found: list[bytes] = await self._scripts.read("unexplained", keys.META, timelines, owner, *ids)
        return found

    async def _orphans(self, kind: str, ids: Sequence[str], *, mend: bool) -> list[Finding]:
        if not ids:
            return []
        lost = await self._scripts.read("orphans", keys.META, kind, int(mend), *ids)
        subjects = [each.decode() for each in lost]
        key = {"users": keys.home, "lists": keys.timeline}.get(kind)
        if mend and key is not None and subjects:
            # Ids are never used again: who is not there now, behind whose back it was written, never will be.
            await self._link.ask(*(("DEL", key(each)) for each in subjects))
        return [Finding("orphan", each, SENTENCES[kind]) for each in subjects]


SENTENCES = {
    "jobs": "a job that nobody would ever have found",
    "statuses": "likes, comments or reposts of a status that is gone",
    "users": "the home of nobody",
    "lists": "the timeline of no list",
}
"""What is said of an orphan, by its kind."""

_PREFIXES = {row.prefix: row.name for row in keys.TABLE if row.tail}


def _by_row(names: Sequence[bytes]) -> dict[str, list[str]]:
    """Ids by the name of their key's row in the table."""
    found = defaultdict(list)
    for name in names:
        text = name.decode(errors="replace")
        start = len("{core}:") if text.startswith("{core}:") else 0
        prefix = text[: text.find(":", start) + 1]
        if prefix in _PREFIXES:
            found[_PREFIXES[prefix]].append(text[len(prefix) :].strip("{}"))
    return found
