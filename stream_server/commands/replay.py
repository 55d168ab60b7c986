"""The command ``replay``: post a recording of statuses through the HTTP API, at a fixed rate or at its own pace."""

import asyncio
import math
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from stream_server.client import Client, ClientFailure, RequestRefused
from stream_server.commands import recording, server_access, setting_options
from stream_server.commands.exit_codes import FAILED, INTERRUPTED, OK, UNREACHABLE, USAGE, CommandFailure
from stream_server.commands.output import JSON_OPTION, OutputConsole, finish
from stream_server.commands.recording import RecordedStatus, UnreadableLine, login_of_author, name_of_author
from stream_server.commands.server_access import ServerAccess
from stream_server.config import config
from stream_server.config.settings import Config

MAX_SHOWN_LINES = 20
"""Number of lines that were not posted and are listed; the others are only counted."""

POST_TOKEN_SECONDS = 600
"""Lifetime of a post's token in seconds. Each post has a new token, valid for all its attempts."""

MAX_ATTEMPTS = 10
"""Attempts per post, about 20 s in all: the time that a server with much data needs to restart."""

MAX_WAITING_ITEMS = 4
"""Items that may wait in each queue. A slow server thus slows the reader down, so the file never fills the memory."""

Item = TypeVar("Item")
DueTime = Callable[[int, float | None], float]
"""A function of a status's number from 0 and Unix time (or None). It returns the seconds from the start to the post."""


@click.command(
    epilog="""
\b
Examples:
  stream-server replay tweets.jsonl --data-dir ./data             as fast as the server accepts them
  stream-server replay tweets.jsonl --data-dir ./data --rate 50   50 a second
  stream-server replay tweets.jsonl --data-dir ./data --speed 60  an hour of the recording per minute

\b
A line is {"author": "ada", "message": "hello", "posted": "2026-01-31T12:00:00Z",
"location": [lon, lat], "place": "London"}; the last three are optional.
"""
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@setting_options.URL_OPTION
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Statuses per second.")
@click.option("--speed", type=click.FloatRange(0, min_open=True), help="Factor of the recording's own pace.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=16, show_default=True, help="Parallel posts.")
@JSON_OPTION
@setting_options.options(*setting_options.ACCESS_SETTINGS)
def replay(
    *,
    file: Path,
    url: str | None,
    rate: float | None,
    speed: float | None,
    concurrency: int,
    as_json: bool,
    **flags: Any,
) -> None:
    """Post the statuses in FILE (JSON lines) as their authors.

    The command creates accounts for the authors. The posts of one author keep their order.
    """
    if rate is not None and speed is not None:
        raise CommandFailure("give only one of --rate and --speed", USAGE)
    settings = server_access.find_server(config.load(flags), url)
    due = original_pace(speed) if speed else steady_pace(rate or math.inf)
    run = ReplayRun(file, due, concurrency)
    try:
        asyncio.run(run.run(settings, server_access.server_address(url, settings)))
    except KeyboardInterrupt:
        run.tally.interrupted = True
    finally:
        shown = [run.tally.table()] if run.tally.total else []
        finish(run.tally.to_json(), *shown, as_json=as_json)
    if run.tally.exit_code != OK:
        raise click.exceptions.Exit(run.tally.exit_code)


def steady_pace(rate: float) -> DueTime:
    """Return a function that says when each status is due: ``rate`` a second or, if it is infinite, all at once."""
    return lambda number, _: number / rate


def original_pace(speed: float) -> DueTime:
    """Return a function that says when a status is due: ``speed`` times the recorded pace; at once without a time."""
    first: float | None = None

    def due(_: int, posted: float | None) -> float:
        nonlocal first
        if posted is None:
            return 0.0
        first = posted if first is None else first
        return (posted - first) / speed

    return due


@dataclass(slots=True)
class ReplaySummary:
    """The result of a replay: counts (lines, posts, repeated requests, unreadable, refused), duration, end."""

    total: int = 0
    posted: int = 0
    repeated: int = 0
    unreadable: int = 0
    refused: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    server_lost: str | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of the command ``replay``: 0 only if every line was posted."""
        if self.server_lost is not None:
            return UNREACHABLE
        if self.interrupted:
            return INTERRUPTED
        return FAILED if self.posted < self.total else OK

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of this summary for ``--json``."""
        return {
            "lines": self.total, "posted": self.posted, "seconds": round(self.seconds, 3), "repeated": self.repeated,
            "unreadable": self.unreadable, "refused": self.refused, "interrupted": self.interrupted,
        }  # fmt: skip

    def table(self) -> Table:
        """Return the numbers of this summary as a table for the terminal."""
        table = Table(show_header=False, box=None, title=f"replay{' (interrupted)' if self.interrupted else ''}")
        rate = self.posted / self.seconds if self.seconds else 0.0
        table.add_row("lines", f"{self.total:,}")
        table.add_row("posted", f"{self.posted:,}  ({rate:,.0f} a second, {self.seconds:,.1f} s)")
        table.add_row("repeated requests", f"{self.repeated:,}")
        table.add_row("unreadable lines", f"{self.unreadable:,}")
        table.add_row("refused by the server", f"{self.refused:,}")
        return table


@asynccontextmanager
async def ordered_workers(
    count: int, work: Callable[[Item], Awaitable[None]]
) -> AsyncIterator[Callable[[str, Item], Awaitable[None]]]:
    """Run ``count`` parallel tasks. Yield ``put(key, item)``: one of the tasks will call ``work(item)``.

    Items with the same key go to the same task, so they keep their order. ``put`` waits while the task's queue is full.
    At the end of the block, wait until all items are done. An exception in a task or the block drops the queued items.
    """
    queues: list[asyncio.Queue[Item | None]] = [asyncio.Queue(MAX_WAITING_ITEMS) for _ in range(count)]

    async def run(queue: asyncio.Queue[Item | None]) -> None:
        while (item := await queue.get()) is not None:
            await work(item)

    async def put(key: str, item: Item) -> None:
        await queues[hash(key) % count].put(item)

    async with asyncio.TaskGroup() as group:
        for queue in queues:
            group.create_task(run(queue))
        yield put
        for queue in queues:
            await queue.put(None)


@dataclass(slots=True)
class ReplayRun:
    """One replay of a recording: it creates the accounts of the authors, then posts the statuses."""

    file: Path
    due: DueTime
    concurrency: int
    tally: ReplaySummary = field(default_factory=ReplaySummary)
    _console: OutputConsole = field(default_factory=lambda: OutputConsole(stderr=True))
    _run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    _user_ids: dict[str, str] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, settings: Config, url: str) -> None:
        """Create the accounts and post the statuses, until the end of the file, Ctrl-C or the loss of the server.

        After the first Ctrl-C the run finishes the posts in progress. The second ends the program at once. Raises
        :class:`CommandFailure` if the server does not answer after :data:`MAX_ATTEMPTS` attempts.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        client = Client(url, attempts=MAX_ATTEMPTS, connections=self.concurrency)
        async with server_access.open_server_access(settings) as access, client as api:
            self._user_ids = await self._create_accounts(api, access)
            started = loop.time()
            try:
                await self._post_all(api, access)
            finally:
                self.tally.seconds = loop.time() - started
                self.tally.repeated = api.repeats
        if self.tally.server_lost is not None:
            raise CommandFailure(self.tally.server_lost, UNREACHABLE)

    async def _create_accounts(self, api: Client, access: ServerAccess) -> dict[str, str]:
        """Create the authors' missing accounts, print unreadable lines. Return all user ids by lower-case login."""
        accounts: dict[str, tuple[str, str]] = {}
        for found in recording.read_recording(self.file):
            self.tally.total += 1
            if isinstance(found, UnreadableLine):
                self.tally.unreadable += 1
                self._print_skipped_line(found.line, found.reason, self.tally.unreadable)
            else:
                login = login_of_author(found.author)
                accounts.setdefault(login.lower(), (login, name_of_author(found.author)))
        if not accounts:
            return {}
        admin_id = await access.find_user("replay", create=True)
        admin = access.sign_token(admin_id, frozenset({"admin"}), POST_TOKEN_SECONDS)
        return await api.create_users(list(accounts.values()), token=admin)

    async def _post_all(self, api: Client, access: ServerAccess) -> None:
        columns = (TextColumn("posting"), BarColumn(), MofNCompleteColumn(), PostRateColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self._console) as progress:
            bar = progress.add_task("posting", total=self.tally.total - self.tally.unreadable)

            async def work(status: RecordedStatus) -> None:
                if self.tally.server_lost is None:
                    await self._post(api, access, status)
                progress.advance(bar)

            async with ordered_workers(self.concurrency, work) as put:
                await self._dispatch_when_due(put)

    async def _dispatch_when_due(self, put: Callable[[str, RecordedStatus], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        statuses = (found for found in recording.read_recording(self.file) if isinstance(found, RecordedStatus))
        for number, status in enumerate(statuses):
            wait = started + self.due(number, status.posted) - loop.time()
            if wait > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._stop.wait()
            if self._stop.is_set():
                return
            await put(status.author, status)

    async def _post(self, api: Client, access: ServerAccess, status: RecordedStatus) -> None:
        author_id = self._user_ids[login_of_author(status.author).lower()]
        token = access.sign_token(author_id, frozenset({"write", "ingest"}), POST_TOKEN_SECONDS)
        try:
            # The key names this run and line, so a repeated request is the same post.
            key = f"{self._run_id}-{status.line}"
            await api.request("POST", "/v1/statuses", body=status.body, token=token, key=key)
        except RequestRefused as refused:
            self.tally.refused += 1
            self._print_skipped_line(status.line, f"refused: {refused}", self.tally.refused)
        except ClientFailure as error:
            self.tally.server_lost = str(error)
            self._stop.set()
        else:
            self.tally.posted += 1

    def _interrupt(self) -> None:
        self.tally.interrupted = True
        self._stop.set()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)  # a second Ctrl-C ends the program at once

    def _print_skipped_line(self, line: int, reason: str, count: int) -> None:
        """Print why a line was not posted, for at most :data:`MAX_SHOWN_LINES` lines. ``count`` counts them from 1."""
        if count <= MAX_SHOWN_LINES:
            self._console.print(f"line {line}: {reason}")
        if count == MAX_SHOWN_LINES:
            self._console.print("… further lines are only counted")


class PostRateColumn(ProgressColumn):
    """A column of the progress bar that shows the present posts per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f}/s")
