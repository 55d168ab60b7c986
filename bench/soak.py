"""``python -m bench.soak``: connects, posts, deletes and polls for a long time, to see whether anything grows.

The program samples memory, open files and tasks. It reports the slope of each over the second half of the run, per
hour, with its standard error. By then everything that fills up at first (caches, the ring, the pools) is full. A
figure counts as flat unless its slope exceeds twice its standard error and it rises by more than half a percent. The
exit code is 1 if memory, files or tasks grow, or if anything is left after all clients have gone. A run of less than
eight minutes reports the slopes but does not judge them, because caches still fill up.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import mix
from bench.gauges import Seen, looked, until
from bench.guests import Guests
from bench.ledger import Ledger
from bench.poster import Connection
from bench.process import end, first_core, last_core, pin
from bench.site import Site
from bench.slope import Slope, fit
from stream_server.runtime.embedded_redis import find_redis_binary

GUESTS = 150
"""Clients at the same time."""

POSTS_PER_SECOND = 20.0
"""Posts a second."""

DELETED_SHARE = 0.1
"""Share of posts after which an older post is deleted."""

LISTENERS = 50
"""Users whose tokens the clients share."""

FAULT_EVERY_SECONDS = 60.0
"""Seconds between two restarts of Redis."""

AWAY_SECONDS = 2.0
"""Seconds that Redis is down during a restart."""

LEAST_SECONDS = 10
"""Shortest run in seconds."""

JUDGED_SECONDS = 480.0
"""Shortest run, in seconds, in which growth is an error."""

LEFT_SECONDS = 60.0
"""Longest wait in seconds until all clients have gone."""

FLAGS = (
    "--heartbeat-seconds", "2", "--write-timeout-seconds", "5", "--log-max-bytes", "20000000",
    "--ring-bytes", "4000000",
)  # fmt: skip
"""Options of the server: small stores, which are full before half of the run, and short deadlines, so that all of them
pass.
"""

WATCHED: dict[str, tuple[str, Callable[[Seen], float], bool]] = {
    "memory": ("KiB", lambda seen: seen.memory_kib, True),
    "open files": ("", lambda seen: seen.files, True),
    "tasks": ("", lambda seen: seen.tasks, True),
    "open streams": ("", lambda seen: seen.streams, False),
    "ring": ("bytes", lambda seen: seen.ring_bytes, False),
}
"""The sampled figures by name: unit, how to read it, whether it must be flat. The others describe the load."""


@dataclass(frozen=True)
class Plan:
    """The options of a run. Times are in seconds."""

    seconds: float
    every: float
    faults: bool
    json: str


class Redis:
    """The server's Redis, which the run can restart."""

    def __init__(self, site: Site) -> None:
        self.socket = site.folder / "r.sock"
        self.restarts = 0
        self._site = site
        self._process = self._start()

    async def restart(self) -> None:
        """Stop Redis, wait, and start it again with all its data."""
        self._process.terminate()
        await asyncio.to_thread(self._process.wait, 30)
        await asyncio.sleep(AWAY_SECONDS)
        self._process = self._start()
        self.restarts += 1

    def end(self) -> None:
        """Stop Redis."""
        end(self._process)

    def _start(self) -> "subprocess.Popen[bytes]":
        options = {
            "port": "0", "unixsocket": str(self.socket), "dir": str(self._site.folder), "appendonly": "yes",
            "save": "", "maxmemory-policy": "noeviction",
        }  # fmt: skip
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        process = self._site.start("redis", [str(find_redis_binary().path), *words])
        pin(process.pid, last_core())
        return process


class Soak:
    """One run against one server."""

    def __init__(self, site: Site, redis: Redis, pid: int, plan: Plan) -> None:
        self.site, self.redis, self.pid, self.plan = site, redis, pid, plan
        self.port = int(site.address.rpartition(":")[2])
        self.samples: list[tuple[float, Seen]] = []
        self.posted = self.deleted = 0
        self.ledger = Ledger()

    async def run(self) -> None:
        """Run all loads until the time is over, then wait until all clients have gone."""
        authors, listeners = self.site.users("writer", mix.AUTHORS), self.site.users("listener", LISTENERS)
        guests = Guests(self.port, [self.site.token(uid, "stream firehose") for uid in listeners], authors, seed=1)
        before = await looked(self.port, self.pid)
        stop = asyncio.Event()
        working = asyncio.gather(
            guests.run(GUESTS, self.plan.seconds), self._post(authors, stop), self._sample(stop), self._fail(stop)
        )
        await asyncio.sleep(self.plan.seconds)
        stop.set()
        await working
        after, seconds = await until(self.port, self.pid, lambda seen: _left(before, seen) == (0, 0), LEFT_SECONDS)
        self._note(guests, before, after, seconds)

    async def _post(self, authors: list[str], stop: asyncio.Event) -> None:
        chance, recent = random.Random(2), deque[tuple[str, str]](maxlen=200)
        tokens = [self.site.token(uid, "write") for uid in authors]
        connection = Connection(*await asyncio.open_connection("127.0.0.1", self.port))
        start = time.monotonic()
        while not stop.is_set():
            draft = mix.draft(self.posted, loud=self.posted % round(POSTS_PER_SECOND) == 0, chance=chance)
            token = tokens[draft.author]
            recent.append((token, await connection.send(token, mix.body(draft, time.monotonic_ns()))))
            self.posted += 1
            if chance.random() < DELETED_SHARE:
                token, status_id = recent.popleft()
                self.deleted += (await connection.ask("DELETE", f"/v1/statuses/{status_id}", token))[0] == 204
            await asyncio.sleep(max(0.0, start + self.posted / POSTS_PER_SECOND - time.monotonic()))
        connection.writer.close()

    async def _sample(self, stop: asyncio.Event) -> None:
        start = time.monotonic()
        while not stop.is_set():
            self.samples.append((time.monotonic() - start, await looked(self.port, self.pid)))
            await asyncio.sleep(self.plan.every)

    async def _fail(self, stop: asyncio.Event) -> None:
        """Restart Redis from time to time, if the plan asks for faults."""
        next_at = time.monotonic() + FAULT_EVERY_SECONDS / 2
        while self.plan.faults and not stop.is_set():
            await asyncio.sleep(0.2)
            if time.monotonic() > next_at:
                await self.redis.restart()
                next_at = time.monotonic() + FAULT_EVERY_SECONDS

    def _note(self, guests: Guests, before: Seen, after: Seen, seconds: float) -> None:
        note = self.ledger.note
        for name, times in sorted(guests.visits.items()):
            note("load", f"visits: {name}", times, "")
        note("load", "visits that were not let in", guests.refused, "")
        note("load", "posts", self.posted, "")
        note("load", "deletes", self.deleted, "")
        note("load", "Redis started anew", self.redis.restarts, "times")
        half = self.samples[len(self.samples) // 2 :]
        for name, (unit, read, must_be_flat) in WATCHED.items():
            slope = fit([at for at, _ in half], [read(seen) for _, seen in half])
            self._note_slope(name, unit, slope, must_be_flat=must_be_flat)
        streams, files = _left(before, after)
        note("end", "until all are gone", seconds, "s")
        note("end", "memory more than before", (after.memory_kib - before.memory_kib) / 1024, "MiB")
        self.ledger.promise("end", "streams left", streams)
        self.ledger.promise("end", "open files more than before", files)

    def _note_slope(self, name: str, unit: str, slope: Slope, *, must_be_flat: bool) -> None:
        self.ledger.note(name, "mean", slope.mean, unit)
        self.ledger.note(name, "slope", slope.per_hour, f"{unit}/h".lstrip())
        self.ledger.note(name, "its standard error", slope.error, f"{unit}/h".lstrip())
        if must_be_flat and self.plan.seconds >= JUDGED_SECONDS:
            self.ledger.promise(name, "grows", float(not slope.flat))


def _left(before: Seen, seen: Seen) -> tuple[float, int]:
    return seen.streams, max(0, seen.files - before.files)


@contextmanager
def soak(plan: Plan) -> Iterator[Soak]:
    """Start a server with its own Redis on the first core; everything else runs on the last core."""
    with tempfile.TemporaryDirectory(prefix="stream-server-soak-") as folder:
        site = Site(Path(folder))
        redis = Redis(site)
        try:
            process, site.address = site.serve("measured", "--redis", f"unix://{redis.socket}", *FLAGS)
            try:
                pin(process.pid, first_core())
                site.people()
                yield Soak(site, redis, process.pid, plan)
            finally:
                end(process)
        finally:
            redis.end()


def plan_from(arguments: list[str]) -> Plan:
    """Parse the command line into a plan."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="how long (20)")
    parser.add_argument("--quick", action="store_true", help="one minute, to see that it works")
    parser.add_argument("--faults", action="store_true", help="start Redis anew every minute")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures there as well")
    given = parser.parse_args(arguments)
    seconds = 60.0 if given.quick else given.minutes * 60
    if seconds < LEAST_SECONDS:
        parser.error("that is too short to see a slope")
    return Plan(seconds, min(2.0, seconds / 60), given.faults, given.json)


def main() -> None:
    """Run and print the figures."""
    plan = plan_from(sys.argv[1:])
    with soak(plan) as made:
        asyncio.run(made.run())
    print(made.ledger.text(f"{plan.seconds / 60:g} minutes of churn"))
    if plan.json:
        Path(plan.json).write_text(made.ledger.json(), encoding="utf-8")
    sys.exit(1 if made.ledger.broken else 0)


if __name__ == "__main__":
    main()
