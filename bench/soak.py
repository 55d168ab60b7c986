"""``python -m bench.soak``: an hour of streams of all kinds and of faults, to see whether anything is lost or grows.

600 clients come and go, authors post and delete, and now and then something fails: Redis, its links, a server. The
oracle of the random faults checks what every client received. One server is never killed. Its memory, open files and
tasks are sampled, and the memory and the keys of Redis. The line through the second half of the samples tells what
grows: by then everything that fills up (caches, the ring, the log) is full. A run of less than an hour does not judge
the slopes. The exit code is 1 if a client missed or got anything wrong, if a fault never happened, if anything grows,
or if anything is left when all have gone.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from redis import RedisError

from bench.gauges import Seen, looked, until
from bench.ledger import Ledger
from bench.process import descendants, end_cleanly, memory_kib
from bench.redis_meter import RedisMeter
from bench.site import LIMITS_OF_A_LOAD
from bench.slope import LEAST_SHARE, fit
from tests.command_line import run
from tests.end_to_end.api import Api, mint
from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.random_faults.faults import Effects, Faults, Front
from tests.end_to_end.random_faults.guests import Author, Guest, filters_of
from tests.end_to_end.random_faults.judge import SAVED, Judge
from tests.end_to_end.random_faults.ledger import Ledger as Deeds
from tests.end_to_end.random_faults.oracle import Record
from tests.end_to_end.random_faults.site import Site
from tests.end_to_end.random_faults.world import kill_left
from tests.end_to_end.server import Server
from tests.redis_process import RedisProcess, private_redis
from tests.waiting import eventually

AUTHORS = 40
"""Authors, each with a post a second."""

READERS = 6
"""Users who listen and write nothing. Each follows two authors."""

STREAMS_PER_USER = "150"
"""Limit of a user's streams: more than are open. The streams of killed processes are forgotten when it is reached."""

JUDGED_SECONDS = 3600.0
"""Shortest run, in seconds, in which growth is an error."""

SAMPLE_SECONDS = 15.0
"""Seconds between two samples, at most."""

LOOK_SECONDS = 10.0
"""Seconds between two looks of the judge."""

BATCHES = 15
"""Points of a line: means of successive samples, because neighbours depend on each other."""

LEFT_SECONDS = 180.0
"""Longest wait in seconds until all clients have reached the head, and until all have gone."""

LEAST_SHARES = {"memory": 0.05, "bytes of user": 0.1}
"""Shares of the mean by which a figure may rise, if more than usual. Python and the C library keep the space of peaks,
and each fault makes another peak: after faults, 46 of 114 MB of resident memory were free. So a leak shows in the
blocks that Python uses. The same few hashes of users take up to a tenth more or less after Redis has loaded them again.
"""

NOT_JUDGED = frozenset({
    "open streams", "ring", "memory of the other", "file of Redis", "Redis, all", "keys of request", "bytes of request",
    "bytes of ended",
})  # fmt: skip
"""Figures that describe the load, or that grow for longer than the run: a key for each write with an idempotency key
is kept for a day, 200 ended follows of each user are kept, and Redis shortens its file now and then.
"""

TIMELINE = "100"
"""Longest timeline. Repair must know it too."""

FLAGS = (
    "--heartbeat-seconds", "10", "--write-timeout-seconds", "5", "--log-max-bytes", "20000000", "--ring-bytes",
    "12000000", "--redis-timeout-seconds", "3", "--client-buffer-bytes", "32768", "--retry-spread-seconds", "1",
    "--timeline-max", TIMELINE,
)  # fmt: skip
"""Options of the servers: small stores, which are full before half of the run, and short deadlines."""


class Plan(NamedTuple):
    """Length of the run in seconds, number of clients, seed of the faults and of all that is random."""

    seconds: float
    clients: int
    seed: int


class Soak:
    """One run. The server ``calm`` is never killed, and its link to Redis never fails."""

    def __init__(self, redis: RedisProcess, calm: Server, other: Front, plan: Plan) -> None:
        self.redis, self.calm, self.other, self.plan = redis, calm, other.server, plan
        self.site = Site([calm, other.server])
        self.deeds, self.ledger = Deeds(), Ledger()
        self.chance = random.Random(plan.seed)
        self.guests: list[Guest] = []
        self.authors: list[Author] = []
        self.samples: list[tuple[float, dict[str, float]]] = []
        self.faults = Faults(redis, [other], other, random.Random(plan.seed), Effects(self._given_up, self._streams))
        self.faults.patience = 6
        self.faults.rest = (min(60, plan.seconds / 60), min(150, plan.seconds / 30))
        self.judge: Judge

    async def prepare(self) -> None:
        """Create the users, their follows and rules, and the clients."""
        async with Api(self.calm) as api:
            people = list((await api.users("s" + uuid.uuid4().hex[:10] for _ in range(AUTHORS + READERS))).values())
            authors, readers = people[:AUTHORS], people[AUTHORS:]
            following = {reader: self.chance.sample(authors, 2) for reader in readers}
            for reader in readers:
                for author in following[reader]:
                    await api.follow(reader, author)
                rules = {"rules": [{"rule": rule} for rule in SAVED]}
                await api.done("POST", "/v1/rules", token=mint(reader), json=rules)
        filters = filters_of(authors, READERS)
        for number in range(self.plan.clients):
            params, reader = filters[number % len(filters)], readers[number % READERS]
            record = Record(f"client {number} {params}", params, reader, following[reader])
            self.guests.append(Guest(self.site, record, self.plan.seed + number, min(300, self.plan.seconds / 4)))
        self.authors = [Author(self.site, self.deeds, authors, at, at) for at in range(AUTHORS)]
        with self.redis.client() as client:
            self.judge = Judge(client, self.deeds, self.guests)

    async def run(self) -> None:
        """Let all live until the time is over, then wait until each client has reached the end of the log."""
        before = await self._seen(lambda seen: seen.streams == 0)
        async with asyncio.TaskGroup() as lives:
            guests = [lives.create_task(guest.run()) for guest in self.guests]
            await eventually(lambda: all(guest.record.start for guest in self.guests), seconds=300, what="all to begin")
            authors = [lives.create_task(author.run()) for author in self.authors]
            done = asyncio.Event()
            watch = lives.create_task(self._watch(done))
            await self.faults.run(self.plan.seconds)
            for author in self.authors:
                author.stop()
            done.set()
            await asyncio.wait([watch, *authors])
            for guest, task in zip(self.guests, guests, strict=True):
                task.cancel()
                guest.home = True
            guests = [lives.create_task(guest.run()) for guest in self.guests]
            await self.judge.look()
            head = self.judge.head
            late = await self._reached(head)
            await self.judge.look()
            self.judge.found += self.judge.at_the_end()
            last = await asyncio.to_thread(self._sample_redis)
            repair = await asyncio.to_thread(
                run, "repair", "--dry-run", "--redis", self.redis.url, "--timeline-max", TIMELINE
            )
            for task in guests:
                task.cancel()
        start = time.monotonic()
        after = await self._seen(lambda seen: seen.streams == 0 and seen.files <= before.files)
        for server in (self.calm, self.other):
            try:
                await asyncio.to_thread(server.stop, 60)
            except AssertionError as error:  # its log has a traceback, or its exit code is not 0
                self.judge.found.append(str(error))
        self._note(before, after, time.monotonic() - start)
        statuses = last["keys of status"] - self.judge.kept
        self.ledger.promise("end", "statuses more or fewer than the log tells", statuses)
        self.ledger.promise("end", "clients that did not reach the last entry", late)
        self.ledger.promise("end", "wrong counters or timelines, or remains of what was deleted", repair.code)
        if repair.code:
            print(repair.out, repair.err)

    async def _reached(self, head: int) -> int:
        """Return how many clients have not reached the head in time."""
        end = time.monotonic() + LEFT_SECONDS
        while late := sum(guest.reached < head for guest in self.guests):
            if time.monotonic() > end:
                break
            await asyncio.sleep(0.5)
        return late

    async def _watch(self, done: asyncio.Event) -> None:
        """Look, take samples and say what happened, until all is done."""
        start = time.monotonic()
        looked_at = sampled_at = said_at = start
        while not done.is_set():
            await asyncio.sleep(0.5)
            now = time.monotonic()
            if now > looked_at + LOOK_SECONDS:
                looked_at = now
                await self.judge.look()
                del self.site.posted[:-1000]
            if now > sampled_at + min(SAMPLE_SECONDS, self.plan.seconds / 60):
                sampled_at = now
                await self._sample(now - start)
            if now > said_at + 60 and self.samples:
                said_at = now
                self._say((now - start) / 60)

    async def _sample(self, at: float) -> None:
        try:
            seen = await looked(*self._door)
            found = await asyncio.to_thread(self._sample_redis)
        except (OSError, HTTPException, RedisError):
            return  # a fault is under way
        of_server = {
            "memory": seen.memory_kib, "blocks of memory": seen.blocks, "open files": seen.files, "tasks": seen.tasks,
            "open streams": seen.streams, "ring": seen.ring_bytes, "memory of the other": self._memory_of_the_other(),
        }  # fmt: skip
        self.samples.append((at, of_server | found))

    def _memory_of_the_other(self) -> int:
        process = self.other.process
        with suppress(OSError, KeyError):  # it ends just now, and a process that has ended has no memory
            return sum(map(memory_kib, descendants(process.pid))) if process else 0
        return 0

    def _sample_redis(self) -> dict[str, float]:
        with self.redis.client() as client:
            meter = RedisMeter(client)
            sizes, counts = meter.families()
            total, beside = meter.read(), meter.bytes_beside_keys()
        return {
            "Redis, all": total.memory, "Redis beside keys": beside, "file of Redis": total.aof,
            "keys": sum(counts.values()) - counts["request"],
            "bytes of keys": sum(sizes.values()) - sizes["request"],
            **{f"keys of {name}": count for name, count in counts.items()},
            **{f"bytes of {name}": size for name, size in sizes.items()},
        }  # fmt: skip

    def _say(self, minutes: float) -> None:
        last, outcomes = self.samples[-1][1], self.judge.outcomes
        print(
            f"{minutes:5.1f} min: {outcomes['written']} writes, {outcomes['unknown']} unknown, {self.judge.checked} "
            f"events checked, {len(self.wrong)} wrong, {self.judge.gaps} gaps, {self.faults.fired.total()} faults; "
            f"{last['memory']:.0f} KiB, {last['open files']:.0f} files, {last['tasks']:.0f} tasks, "
            f"Redis {last['bytes of keys']:.0f} bytes in {last['keys']:.0f} keys",
            *self.wrong[:5], sep="\n       ", flush=True,
        )  # fmt: skip

    def _note(self, before: Seen, after: Seen, seconds: float) -> None:
        note, promise, judge = self.ledger.note, self.ledger.promise, self.judge
        for name, times in sorted(Guest.visited.items()):
            note("load", f"visits: {name}", times, "")
        for name, times in sorted(judge.outcomes.items()):
            note("load", f"writes: {name}", times, "")
        for fault, times in sorted(self.faults.fired.items()):
            note("faults", fault, times, "times")
        note("streams", "events checked", judge.checked, "")
        note("streams", "gaps where the log was trimmed", judge.gaps, "")
        promise("streams", "wrong, missing, twice or out of order", len(self.wrong))
        promise("faults", "that never happened", len(self.faults.missing))
        self._note_slopes()
        note("end", "until all are gone", seconds, "s")
        note("end", "memory more than before", (after.memory_kib - before.memory_kib) / 1024, "MiB")
        promise("end", "streams left", after.streams)
        promise("end", "open files more than before", max(0, after.files - before.files))

    def _note_slopes(self) -> None:
        half = self.samples[len(self.samples) // 2 :]
        for name in sorted({name for _, found in half for name in found}):
            points = _batches([(at, found.get(name, 0.0)) for at, found in half])
            slope = fit([at for at, _ in points], [value for _, value in points])
            self.ledger.note(name, "mean", slope.mean, f"; {slope.per_hour:+,.1f} ± {slope.error:,.1f} an hour")
            if name not in NOT_JUDGED and self.plan.seconds >= JUDGED_SECONDS:
                self.ledger.promise(name, "grows", float(not slope.is_flat(LEAST_SHARES.get(name, LEAST_SHARE))))

    async def _seen(self, check: Callable[[Seen], bool]) -> Seen:
        return (await until(*self._door, check, LEFT_SECONDS))[0]

    def _given_up(self) -> int:
        return self.judge.outcomes["given up"] + self.deeds.count("given up")

    def _streams(self, address: str) -> int:
        return sum(guest.streams_from == address for guest in self.guests)

    @property
    def wrong(self) -> list[str]:
        """The complaints of the judge: each error of the log, or of the messages of a client."""
        return self.judge.found + [wrong for guest in self.guests for wrong in guest.wrong]

    @property
    def _door(self) -> tuple[int, int]:
        assert self.calm.process is not None
        return int(self.calm.address.rpartition(":")[2]), self.calm.process.pid


def _batches(samples: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the means of successive samples."""
    size = max(1, len(samples) // BATCHES)
    pieces = (samples[at : at + size] for at in range(0, len(samples) - size + 1, size))
    return [(sum(at for at, _ in piece) / size, sum(value for _, value in piece) / size) for piece in pieces]


@asynccontextmanager
async def soak(plan: Plan) -> AsyncIterator[Soak]:
    """Start a Redis that keeps each acknowledged write, and two servers with own links to it, one with two workers."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stream-server-soak-")))
        redis = stack.enter_context(private_redis())
        proxy = await stack.enter_async_context(Proxy(redis.socket))
        settings = LIMITS_OF_A_LOAD | {"STREAMS_PER_USER": STREAMS_PER_USER}
        limits = {f"STREAM_SERVER_{name}": value for name, value in settings.items()}
        calm = Server(folder / "calm", "--redis", redis.url, *FLAGS, variables=limits, preloaded=False)
        flags = ("--redis", proxy.url, "--workers", "2", *FLAGS)
        other = Server(folder / "other", *flags, variables=limits, preloaded=False)
        for server in (calm, other):
            server.START_SECONDS = 240
            await asyncio.to_thread(server.start)
            stack.callback(kill_left, server)
        made = Soak(redis, calm, Front(other, proxy), plan)
        await made.prepare()
        yield made


async def measure(plan: Plan) -> Soak:
    """Run once."""
    async with soak(plan) as made:
        await made.run()
    return made


def main() -> None:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long (60); one minute shows that it works")
    parser.add_argument("--clients", type=int, default=600, help="clients (600)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (1)")
    given = parser.parse_args()
    end_cleanly()
    made = asyncio.run(measure(Plan(60 * given.minutes, given.clients, given.seed)))
    print("\n".join(made.wrong[:20]))
    print(made.ledger.text(f"{given.minutes:g} minutes"))
    sys.exit(1 if made.ledger.broken else 0)


if __name__ == "__main__":
    main()
