"""The command ``load``: synthetic streams and writers against a server, and what they measure.

`LatencyHistogram` counts latencies in bounded memory, however many there are.
"""

import asyncio
import ipaddress
import math
import secrets
import signal
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from stream_server.client import Client, ClientFailure, Post
from stream_server.commands import server_access, setting_options
from stream_server.commands.exit_codes import FAILED, INTERRUPTED, OK, USAGE, CommandFailure
from stream_server.commands.output import JSON_OPTION, OutputConsole, finish
from stream_server.commands.server_access import ServerAccess
from stream_server.config import config
from stream_server.config.settings import Config

MAX_STREAMS, MAX_WRITERS, MAX_SECONDS, MAX_RATE = 1000, 64, 3600, 10_000
STREAMS_PER_USER = 30
"""Number of streams that one account opens; a server allows 32 by default."""

STEP_SECONDS = 0.1
"""Seconds between two looks at the progress and the end."""


class LatencyHistogram:
    """Latencies in milliseconds, each rounded to three digits, so that their memory is bounded."""

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()

    def add(self, seconds: float) -> None:
        """Count a latency of ``seconds``."""
        self._counts[float(f"{seconds * 1000:.3g}")] += 1

    def quantile_ms(self, share: float) -> float | None:
        """Return the latency in milliseconds below which ``share`` (0 to 1) of them lie; None if there are none."""
        rank, seen = share * self._counts.total(), 0
        for latency in sorted(self._counts):
            seen += self._counts[latency]
            if seen >= rank:
                return latency
        return None

    def summary(self) -> dict[str, float | None]:
        """Return the median and the 99th percentile, in milliseconds, for ``--json``."""
        return {"p50_ms": self.quantile_ms(0.5), "p99_ms": self.quantile_ms(0.99)}


@click.command(
    epilog="""
\b
Examples:
  stream-server load --data-dir ./data
  stream-server load --data-dir ./data --streams 500 --words 10 --rate 200 --seconds 30
  stream-server load --redis redis://10.0.0.5 --url http://10.0.0.7:8000 --remote

\b
Use it on a server for tests: the accounts load_1, load_2 … and their posts stay. The command shares this machine's
processors with the server, so its figures are lower bounds.
""",
    short_help="Put a synthetic load on a server, and measure.",
)
@setting_options.URL_OPTION
@click.option("--streams", type=click.IntRange(0, MAX_STREAMS), default=100, show_default=True, help="Open streams.")
@click.option("--writers", type=click.IntRange(1, MAX_WRITERS), default=8, show_default=True, help="Parallel writers.")
@click.option(
    "--rate", type=click.FloatRange(0, MAX_RATE, min_open=True), default=50, show_default=True, help="Posts per second."
)
@click.option("--seconds", type=click.FloatRange(0.1, MAX_SECONDS), default=10, show_default=True, help="Duration.")
@click.option(
    "--words", type=click.IntRange(1, 1000), default=1, show_default=True, help="A post goes to one of so many streams."
)
@click.option("--remote", is_flag=True, help="Allow a server that is not on this machine.")
@JSON_OPTION
@setting_options.options(*setting_options.ACCESS_SETTINGS)
def load(
    *,
    url: str | None,
    streams: int,
    writers: int,
    rate: float,
    seconds: float,
    words: int,
    remote: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Open streams, post at a fixed rate, and measure how long posts take to arrive.

    Each post has one of --words words in turn, and each stream tracks one of them. The command needs the server's key,
    as `replay` does. Ctrl-C ends it early, with the figures up to then.
    """
    settings = server_access.find_server(config.load(flags), url)
    address = server_access.server_address(url, settings)
    if not remote and not is_on_this_machine(address):
        raise CommandFailure(f"{address} is not on this machine: give --remote if it may be put under load", USAGE)
    run = LoadRun(address, streams, writers, rate, seconds, words)
    asyncio.run(run.run(settings))
    code = INTERRUPTED if run.stopped.is_set() else FAILED if run.failures or run.missing else OK
    finish(run.summary(), run.table(), as_json=as_json, code=code)


def is_on_this_machine(url: str) -> bool:
    """Whether the host of the URL is ``localhost`` or an address of the loopback interface."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class LoadRun:
    """One run: the streams, the writers and what they count.

    Attributes:
        words: Number of words; each post has one of them, and each stream tracks one of them.
        posted: Posts that the server acknowledged.
        received: Posts that arrived, once for each stream.
        failures: Writes and streams that failed.
        stopped: Set by Ctrl-C.
    """

    url: str
    streams: int
    writers: int
    rate: float
    seconds: float
    words: int
    posted: int = 0
    received: int = 0
    failures: int = 0
    expected: int = 0
    elapsed: float = 0.0
    write_times: LatencyHistogram = field(default_factory=LatencyHistogram)
    delivery_times: LatencyHistogram = field(default_factory=LatencyHistogram)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _opened: int = 0
    _word: str = field(default_factory=lambda: f"load{secrets.token_hex(4)}x")
    _first_failure: str = ""

    @property
    def missing(self) -> int:
        """Deliveries that were expected and have not arrived."""
        return max(0, self.expected - self.received)

    async def run(self, settings: Config) -> None:
        """Create the accounts, open the streams, post, and wait until the posts have arrived."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.stopped.set)
        async with AsyncExitStack() as stack:
            access = await stack.enter_async_context(server_access.open_server_access(settings))
            tokens = await self._create_accounts(access)
            clients = [
                await stack.enter_async_context(Client(self.url, token, connections=self.writers)) for token in tokens
            ]
            tasks = [
                asyncio.create_task(self._read(clients[n % len(clients)], n % self.words), name=f"load stream {n}")
                for n in range(self.streams)
            ]
            try:
                # The streams have a minute to open.
                await self._until(lambda: self._opened >= self.streams or self.failures > 0, 60.0)
                await self._write(clients[: self.writers])
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _create_accounts(self, access: ServerAccess) -> list[str]:
        """Return a token for each account: one a writer, and enough for the streams. They have no limits of writes."""
        scopes = frozenset({"read", "write", "stream", "ingest"})
        count = max(self.writers, math.ceil(self.streams / STREAMS_PER_USER))
        users = [await access.find_user(f"load_{n + 1}", create=True) for n in range(count)]
        return [access.sign_token(user, scopes, MAX_SECONDS + 600) for user in users]

    async def _read(self, client: Client, word: int) -> None:
        """Read the stream of the word with the number ``word``. Count its posts and their ages in seconds."""
        try:
            async for event in client.stream(track=f"{self._word}{word}", kinds="post", control=True):
                if event.kind == "hello":
                    self._opened += 1
                if isinstance(event, Post):
                    self.received += 1
                    self.delivery_times.add(time.monotonic() - float(event.status.message.rpartition(" ")[2]))
        except ClientFailure as error:
            self._count_failure(error)

    async def _write(self, clients: list[Client]) -> None:
        """Post at the rate until the time is over, then wait for the last deliveries."""
        started = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=OutputConsole(stderr=True), transient=True) as progress:
            bar = progress.add_task("posting", total=self.seconds)
            async with asyncio.TaskGroup() as group:
                for number, client in enumerate(clients):
                    group.create_task(self._post(client, number, started))
                while not self._is_over(started):
                    await self._pause(STEP_SECONDS)
                    seconds = time.monotonic() - started
                    shown = f"{self.posted:,} posts, {self.received:,} deliveries"
                    progress.update(bar, completed=seconds, description=shown)
            self.elapsed = time.monotonic() - started
            await self._until(lambda: not self.missing, 5.0)  # the time for the last deliveries

    async def _post(self, client: Client, number: int, started: float) -> None:
        """Post this writer's share: the posts ``number``, ``number + writers`` and so on, each when it is due."""
        while not self._is_over(started):
            wait = started + number / self.rate - time.monotonic()
            if wait > 0:
                await self._pause(min(wait, started + self.seconds - time.monotonic()))
            if self._is_over(started):
                return
            word = number % self.words
            sent = time.monotonic()
            try:
                await client.post(f"{self._word}{word} {number} {sent:.6f}")
            except ClientFailure as error:
                self._count_failure(error)
            else:
                self.posted += 1
                self.expected += sum(1 for n in range(word, self.streams, self.words))
                self.write_times.add(time.monotonic() - sent)
            number += self.writers

    def _is_over(self, started: float) -> bool:
        return self.stopped.is_set() or time.monotonic() - started >= self.seconds

    async def _pause(self, seconds: float) -> None:
        """Wait for some seconds, or until Ctrl-C."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self.stopped.wait()
        except TimeoutError:
            return

    async def _until(self, check: Any, seconds: float) -> None:
        """Wait until ``check`` returns true, for at most ``seconds``, or until Ctrl-C."""
        end = time.monotonic() + seconds
        while not check() and not self.stopped.is_set() and time.monotonic() < end:
            await self._pause(STEP_SECONDS)

    def _count_failure(self, error: ClientFailure) -> None:
        self.failures += 1
        self._first_failure = self._first_failure or str(error)

    def summary(self) -> dict[str, Any]:
        """Return the figures for ``--json``. Rates are per second, latencies in milliseconds."""
        seconds = max(self.elapsed, 1e-9)
        return {
            "streams": self.streams, "writers": self.writers, "seconds": round(self.elapsed, 3),
            "posted": self.posted, "posts_per_second": round(self.posted / seconds, 1),
            "delivered": self.received, "deliveries_per_second": round(self.received / seconds, 1),
            "missing": self.missing, "failures": self.failures, "first_failure": self._first_failure or None,
            "write": self.write_times.summary(), "delivery": self.delivery_times.summary(),
            "interrupted": self.stopped.is_set(),
        }  # fmt: skip

    def table(self) -> Table:
        """Return the figures as a table for the terminal."""
        found = self.summary()
        table = Table(show_header=False, box=None, title="load (interrupted)" if found["interrupted"] else "load")
        table.add_row("posts", f"{self.posted:,}  ({found['posts_per_second']:,} a second, {found['seconds']} s)")
        table.add_row("deliveries", f"{self.received:,}  ({found['deliveries_per_second']:,} a second)")
        for name, times in (("write", found["write"]), ("until delivered", found["delivery"])):
            if times["p50_ms"] is not None:
                table.add_row(name, f"p50 {times['p50_ms']:,.1f} ms, p99 {times['p99_ms']:,.1f} ms")
        table.add_row("missing deliveries", f"{self.missing:,}")
        table.add_row("failures", f"{self.failures:,} {self._first_failure}".strip())
        return table
