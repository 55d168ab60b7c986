"""Visits to home timelines: which users still come, and whose home timeline must be made before it is shown.

The home timeline of a user who has not come for a time is not kept: it is *asleep* (``lua/timeline.lua``). A
refill makes it again when the user comes back. Each server records visits from the first round of the loop over idle
homes on, at most one of a user a day. Before that, visits cost nothing.
:class:`IdleHomes` finds the home timelines whose users have not come for long, and stops keeping them.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence

from stream_server.errors import Unavailable
from stream_server.store import keys
from stream_server.store.jobs.lease import Lease
from stream_server.store.jobs.queue import ClaimedJob, PassOutcome
from stream_server.store.jobs.runner import JobRunner
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.scripts import ScriptCall, ScriptRunner

RECORD_SECONDS = 86_400.0
"""Age in seconds of a recorded visit from which the next visit is recorded."""

REMEMBERED_SECONDS = 600.0
"""Time in seconds for which a process knows that a user has come. Meanwhile a visit costs nothing.

It is short, because a failover of Redis may lose that a timeline was woken. For so long a process also believes that
visits need not be recorded.
"""

MAX_REMEMBERED = 100_000
"""Users whom a process remembers. They take about 20 MB."""

POLL_SECONDS = 0.05
"""Interval in seconds at which a request asks whether another has completed the timeline."""

SLACK_SECONDS = RECORD_SECONDS + REMEMBERED_SECONDS
"""Greatest age in seconds of the record of a user who comes all the time."""


class HomeVisits:
    """Records who reads the home timeline, and completes timelines that were not kept.

    ``monotonic`` returns seconds that never go back.
    """

    def __init__(self, redis: RedisClient, scripts: ScriptRunner, runner: JobRunner) -> None:
        self.monotonic = time.monotonic
        self._redis = redis
        self._scripts = scripts
        self._runner = runner
        self._seen = OrderedDict[str, float]()
        self._needed = False
        self._needed_checked_at = -math.inf

    async def check_needed(self) -> None:
        """Ask Redis whether visits must be recorded, unless the last answer was yes or is less than ten minutes old."""
        if not self._needed and self.monotonic() - self._needed_checked_at >= REMEMBERED_SECONDS:
            checked_at = self.monotonic()
            ((since,),) = await self._redis.execute(("HMGET", keys.META, "asleep"))
            self._needed, self._needed_checked_at = since is not None, checked_at

    async def arrive(self, uid: str) -> None:
        """Wait until the home timeline of a user who wants to read it is complete.

        Raises `Unavailable` if it is not complete before the time of the request is over. Job workers complete it then.
        """
        await self.check_needed()
        if not self._needed or self.monotonic() - self._seen.get(uid, -math.inf) < REMEMBERED_SECONDS:
            return
        deadline = self.monotonic() + self._redis.remaining_seconds
        while True:
            stale_ms = round(RECORD_SECONDS * 1000)
            fences: list[bytes] = await self._scripts.call("home_visit", keys.META, uid=uid, stale_ms=stale_ms)
            if not fences:
                break
            if fences[0]:
                job, outcome = ClaimedJob(f"refill-home-{uid}", fences[0].decode()), PassOutcome.MORE
                while not outcome.is_final:
                    outcome = await self._runner.run_pass(job)
            elif self.monotonic() + POLL_SECONDS >= deadline:
                raise Unavailable("the home timeline is being made again", retry_after=1)
            else:
                await asyncio.sleep(POLL_SECONDS)
        self._seen[uid] = self.monotonic()
        self._seen.move_to_end(uid)
        if len(self._seen) > MAX_REMEMBERED:
            self._seen.popitem(last=False)


KEYS_PER_SCAN = 300
"""Approximate number of keys in one page of the scan."""

USERS_PER_CALL = 100
"""Home timelines that one script call lets fall asleep."""


class IdleHomes:
    """Finds and deletes the home timelines whose users have not come for a while (``lua/timeline.lua``)."""

    def __init__(self, derived: DerivedRedis, scripts: ScriptRunner) -> None:
        self._derived = derived
        self._scripts = scripts
        self.lease = Lease(scripts, "idle")

    async def scan(self) -> AsyncIterator[list[str]]:
        """Scan the names of all keys, page by page. Yield the ids of the users whose home timelines are on a page.

        A page without a home timeline is left out.
        """
        for server in self._derived.primaries:
            cursor = b"0"
            while True:
                command = ("SCAN", cursor, "MATCH", keys.key_for("home") + "*", "COUNT", KEYS_PER_SCAN)
                ((cursor, names),) = await server.execute(command)
                if names:
                    yield [keys.parse(name.decode())[1] for name in names]
                if cursor == b"0":
                    break

    async def let_sleep(self, uids: Sequence[str], idle_seconds: float) -> int:
        """Let the home timelines of those users fall asleep who have not read theirs for ``idle_seconds``.

        Nothing is added to a sleeping timeline, and a job deletes it. Return how many fell asleep.

        A visit is recorded up to `SLACK_SECONDS` late, so this time is added to ``idle_seconds``.
        """
        limits = {
            "idle_ms": round((idle_seconds + SLACK_SECONDS) * 1000),
            # So long after the first round, all processes know that visits must be recorded.
            "learn_ms": round(3 * REMEMBERED_SECONDS * 1000),
        }
        starts = range(0, len(uids), USERS_PER_CALL)
        calls = [ScriptCall("homes_sleep", limits, uids[at : at + USERS_PER_CALL]) for at in starts]
        return sum(await self._scripts.call_each(keys.META, calls))
