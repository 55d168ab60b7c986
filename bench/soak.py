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
import sys
import time
from collections import deque
from collections.abc import Callable

from bench import mix
from bench.gauges import Seen, looked, until
from bench.guests import Guests
from bench.ledger import Ledger
from bench.poster import Connection
from bench.process import end, end_cleanly, first_core, pin
from bench.site import Site, site
from bench.slope import Slope, fit

GUESTS = 150
"""Clients at the same time."""

POSTS_PER_SECOND = 20.0
"""Posts a second."""

DELETED_SHARE = 0.1
"""Share of posts after which an older post is deleted."""

LISTENERS = 50
"""Users whose tokens the clients share."""

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


class Soak:
    """One run against one server."""

    def __init__(self, site: Site, pid: int, port: int, seconds: float) -> None:
        self.site, self.pid, self.port, self.seconds = site, pid, port, seconds
        self.samples: list[tuple[float, Seen]] = []
        self.posted = self.deleted = 0
        self.ledger = Ledger()

    async def run(self) -> None:
        """Run all loads until the time is over, then wait until all clients have gone."""
        authors, listeners = self.site.users("writer", mix.AUTHORS), self.site.users("listener", LISTENERS)
        guests = Guests(self.port, [self.site.token(uid, "stream firehose") for uid in listeners], authors, seed=1)
        before = await looked(self.port, self.pid)
        stop = asyncio.Event()
        working = asyncio.gather(guests.run(GUESTS, self.seconds), self._post(authors, stop), self._sample(stop))
        await asyncio.sleep(self.seconds)
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
            await asyncio.sleep(min(2.0, self.seconds / 60))

    def _note(self, guests: Guests, before: Seen, after: Seen, seconds: float) -> None:
        note = self.ledger.note
        for name, times in sorted(guests.visits.items()):
            note("load", f"visits: {name}", times, "")
        note("load", "visits that were not let in", guests.refused, "")
        note("load", "posts", self.posted, "")
        note("load", "deletes", self.deleted, "")
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
        if must_be_flat and self.seconds >= JUDGED_SECONDS:
            self.ledger.promise(name, "grows", float(not slope.flat))


def _left(before: Seen, seen: Seen) -> tuple[float, int]:
    return seen.streams, max(0, seen.files - before.files)


def main() -> None:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="how long (20); one minute shows that it works")
    given = parser.parse_args()
    end_cleanly()
    with site() as shared:
        process, address = shared.serve("measured", "--redis", f"unix://{shared.redis_socket}", *FLAGS)
        try:
            pin(process.pid, first_core())
            made = Soak(shared, process.pid, int(address.rpartition(":")[2]), 60 * given.minutes)
            asyncio.run(made.run())
        finally:
            end(process)
    print(made.ledger.text(f"{given.minutes:g} minutes of churn"))
    sys.exit(1 if made.ledger.broken else 0)


if __name__ == "__main__":
    main()
