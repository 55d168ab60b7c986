"""``python -m bench.lake``: how fast ``stream-server export`` writes a lake, and how fast it erases posts from it."""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # it has no types

from bench.burst import Bursts
from bench.disturbance import Disturbance
from bench.process import CORES, end_cleanly, first_core, last_core, pin
from bench.site import Site, site
from stream_server.commands.lake_erasure import Gone, rewrite
from stream_server.commands.lake_files import LakeFile, position_of

MOST_EVENTS = 40_000
"""As many as the ring of the server holds. The copies have no data, so a page that it reads from the log is empty."""

ERASED = 100
"""One of so many posts is erased."""


class Run(NamedTuple):
    """One run of the command: its CPU time and its time in seconds, and its memory at most, in MiB."""

    cpu: float
    seconds: float
    memory: float


class Figures(NamedTuple):
    """The figures of one run of the command. ``start`` is a run that finds nothing new."""

    events: int
    bytes: int
    writing: Run
    start: Run
    erasing_seconds: float

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        cpu, seconds = self.writing.cpu - self.start.cpu, self.writing.seconds - self.start.seconds
        return [
            f"{self.events:,} events in {self.bytes:,} bytes",
            f"written: {self.events / cpu:,.0f} events for a second of CPU",
            f"written: {self.events / seconds:,.0f} events for a second of the clock",
            f"memory at most: {self.writing.memory:,.0f} MiB, without an event {self.start.memory:,.0f} MiB",
            f"erased, 1 in {ERASED}: {self.events / self.erasing_seconds:,.0f} rows for a second of CPU",
        ]


def export(made: Site, token: str, lake: Path) -> Run:
    """Run the command alone on the first core until it has all."""
    command = [
        sys.executable, "-m", "stream_server", "export", "--url", made.address, "--token", token, "--every", "1h",
        "--until", "now", "--to", str(lake),
    ]  # fmt: skip
    started = time.monotonic()
    process = made.start("export", command)
    pin(process.pid, first_core())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError((made.folder / "export.err").read_text())
    return Run(used.ru_utime + used.ru_stime, time.monotonic() - started, used.ru_maxrss / 1024)


def wait_until_read(made: Site, token: str, events: int) -> None:
    """Wait until the server has read so many events from Redis: it answers polls up to what it has read."""
    head = None
    while head is None or head.n < events:
        time.sleep(0.1)
        head = position_of(made.call("/v1/events?firehose=true&wait=0", None, token)["cursor"])


def erase(files: list[Path]) -> float:
    """Take one post in :data:`ERASED` out of the files. Return the CPU time in seconds."""
    gone = Gone()
    for path in files:
        gone.ids.update(pq.ParquetFile(path).read(columns=["id"])["id"].to_pylist()[::ERASED])
    before = time.process_time()
    for path in files:
        start = position_of(path.stem)
        assert start is not None
        rewrite(LakeFile(start, path), gone)
    return time.process_time() - before


def measure(events: int) -> Figures:
    """Fill a log, and measure."""
    with site() as made:
        token = made.token(made.admin, "stream firehose")

        async def fill() -> None:
            await (await Bursts.of(made)).fill(events)

        asyncio.run(fill())
        wait_until_read(made, token, events)
        lake = made.folder / "lake"
        writing, start = export(made, token, lake), export(made, token, lake)
        files = sorted(lake.glob("*/*/*.parquet"))
        found = sum(pq.read_metadata(path).num_rows for path in files)
        if found < events:
            raise RuntimeError(f"the lake has {found} of {events} events")
        size = sum(path.stat().st_size for path in files)
        return Figures(found, size, writing, start, erase(files))


def main() -> None:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.lake", description=__doc__)
    about = f"events on the log, at most and by default {MOST_EVENTS:,}"
    parser.add_argument("--events", type=int, default=MOST_EVENTS, help=about)
    given = parser.parse_args()
    end_cleanly()
    pin(os.getpid(), last_core())
    disturbance = Disturbance()
    figures = measure(given.events)
    print("\n".join([*figures.lines(), f"{len(CORES)} cores; {disturbance.note()}"]))


if __name__ == "__main__":
    main()
