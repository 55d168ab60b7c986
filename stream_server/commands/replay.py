"""``replay``: a file of statuses through the HTTP API, at a rate or at its own pace."""

import asyncio
import secrets
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from stream_server.client import ApiClient, ClientFailure, RequestRefused
from stream_server.commands import author_names, pacing, recording, server_access, setting_options
from stream_server.commands.exit_codes import UNREACHABLE, USAGE, CommandFailure
from stream_server.commands.ordered_workers import OrderedWorkers
from stream_server.commands.recording import RecordedStatus, UnreadableLine
from stream_server.commands.replay_summary import ReplaySummary
from stream_server.commands.server_access import ServerAccess
from stream_server.config import config
from stream_server.config.settings import Config

MAX_SHOWN_LINES = 20
"""Lines that were not posted are told one by one up to so many, then only counted."""

TOKEN_TTL_SECONDS = 600
"""Tokens are signed anew for each post, and outlive its repetitions."""

MAX_ATTEMPTS = 10
"""A post is tried so often, for about 20 s in all: as long as a server takes to start again on much data."""

ADMIN_LOGIN = "replay"
"""The account that makes the others."""

EPILOG = """
\b
Examples:
  stream-server replay tweets.jsonl --data-dir ./data             as fast as the server takes them
  stream-server replay tweets.jsonl --data-dir ./data --rate 50   50 a second
  stream-server replay tweets.jsonl --data-dir ./data --speed 60  an hour of it in a minute

\b
A line is {"author": "ada", "message": "hello", "posted": "2026-01-31T12:00:00Z",
"location": [lon, lat], "place": "London"}; the last three may be null or missing.
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", help="The server; by default the one on --data-dir, else http://127.0.0.1:8000.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Statuses a second.")
@click.option("--speed", type=click.FloatRange(0, min_open=True), help="Times the file's own pace.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=16, show_default=True, help="Posts at once.")
@setting_options.options(*setting_options.ACCESS_SETTINGS)
@click.pass_context
def replay(
    context: click.Context,
    /,
    file: Path,
    url: str | None,
    rate: float | None,
    speed: float | None,
    concurrency: int,
    **flags: Any,
) -> None:
    """Post the statuses in FILE (JSON lines) as their authors.

    Accounts are made for the authors. The posts of one author keep their order.
    """
    if rate is not None and speed is not None:
        raise CommandFailure("--rate and --speed contradict each other: give one of them", USAGE)
    settled = config.load(flags)
    due = pacing.SteadyPace(rate) if rate else pacing.OriginalPace(speed) if speed else pacing.at_once
    run = ReplayRun(file, due, concurrency)
    try:
        asyncio.run(run.run(settled, server_access.server_address(url, settled)))
    except KeyboardInterrupt:
        run.tally.interrupted = True
    finally:
        if run.tally.total:
            Console().print(run.tally.table())
    context.exit(run.tally.exit_code)


@dataclass(slots=True)
class ReplayRun:
    """One replay of a file: accounts first, then the posts."""

    file: Path
    due: pacing.DueTime
    concurrency: int
    tally: ReplaySummary = field(default_factory=ReplaySummary)
    _console: Console = field(default_factory=lambda: Console(stderr=True))
    _run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    _user_ids: dict[str, str] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, settled: Config, url: str) -> None:
        """Do it, until the end of the file, Ctrl-C (once: what is under way is finished), or the loss of the server."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        client = ApiClient(url, attempts=MAX_ATTEMPTS, connections=self.concurrency)
        async with server_access.open_server_access(settled) as stage, client as api:
            self._user_ids = await self._create_accounts(api, stage)
            started = loop.time()
            try:
                await self._post_all(api, stage)
            finally:
                self.tally.seconds = loop.time() - started
                self.tally.repeated = api.repeats
        if self.tally.server_lost is not None:
            raise CommandFailure(self.tally.server_lost, UNREACHABLE)

    async def _create_accounts(self, api: ApiClient, access: ServerAccess) -> dict[str, str]:
        """Lower-case login → user id of everyone in the file, made in batches; tells what cannot be read."""
        people: dict[str, tuple[str, str]] = {}
        for found in recording.read_recording(self.file):
            self.tally.total += 1
            if isinstance(found, UnreadableLine):
                self.tally.unreadable += 1
                self._print_skipped_line(found.line, found.reason, self.tally.unreadable)
            else:
                login = author_names.login_of_author(found.author)
                people.setdefault(login.lower(), (login, author_names.name_of_author(found.author)))
        if not people:
            return {}
        admin = access.sign_token(
            await access.find_user(ADMIN_LOGIN, create=True), frozenset({"admin"}), TOKEN_TTL_SECONDS
        )
        return await api.create_users(list(people.values()), token=admin)

    async def _post_all(self, api: ApiClient, access: ServerAccess) -> None:
        with self._progress() as progress:
            bar = progress.add_task("posting", total=self.tally.total - self.tally.unreadable)

            async def work(status: RecordedStatus) -> None:
                if self.tally.server_lost is None:
                    await self._post(api, access, status)
                progress.advance(bar)

            async with OrderedWorkers(self.concurrency, work) as lanes:
                await self._dispatch_when_due(lanes)

    async def _dispatch_when_due(self, workers: OrderedWorkers[RecordedStatus]) -> None:
        """Hand each status over when it is due, until the end or a stop."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        statuses = (found for found in recording.read_recording(self.file) if isinstance(found, RecordedStatus))
        for number, status in enumerate(statuses):
            wait = started + self.due(number, status.posted) - loop.time()
            if wait > 0:
                await self._wait_or_stop(wait)
            if self._stop.is_set():
                return
            await workers.put(status.author, status)

    async def _post(self, api: ApiClient, access: ServerAccess, status: RecordedStatus) -> None:
        token = access.sign_token(
            self._user_ids[author_names.login_of_author(status.author).lower()], frozenset({"write"}), TOKEN_TTL_SECONDS
        )
        try:
            # The key names the line of this run: a repetition of the request is the same post.
            await api.post(**status.body, token=token, key=f"{self._run_id}-{status.line}")
        except RequestRefused as refused:
            self.tally.refused += 1
            self._print_skipped_line(status.line, f"refused: {refused}", self.tally.refused)
        except ClientFailure as error:
            self.tally.server_lost = str(error)
            self._stop.set()
        else:
            self.tally.posted += 1

    async def _wait_or_stop(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    def _interrupt(self) -> None:
        self.tally.interrupted = True
        self._stop.set()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)  # the second one ends it at once

    def _print_skipped_line(self, line: int, reason: str, count: int) -> None:
        if count <= MAX_SHOWN_LINES:
            self._console.print(f"line {line}: {reason}", markup=False, highlight=False)
        if count == MAX_SHOWN_LINES:
            self._console.print("… more like these are only counted", markup=False)

    def _progress(self) -> Progress:
        columns = (TextColumn("posting"), BarColumn(), MofNCompleteColumn(), PostRateColumn(), TimeRemainingColumn())
        return Progress(*columns, console=self._console)


class PostRateColumn(ProgressColumn):
    """Posts a second, lately."""

    def render(self, task: Task) -> Text:
        """The column's text."""
        return Text(f"{task.speed or 0:,.0f}/s")
