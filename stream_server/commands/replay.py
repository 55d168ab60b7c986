"""The command ``replay``: post a file of statuses through the HTTP API, at a fixed rate or at its own pace."""

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
"""Number of lines that were not posted and are listed; the others are only counted."""

TOKEN_TTL_SECONDS = 600
"""Lifetime of a post's token in seconds. Each post has a new token, valid for all its attempts."""

MAX_ATTEMPTS = 10
"""Attempts per post, about 20 s in all: the time that a server with much data needs to restart."""

ADMIN_LOGIN = "replay"
"""Login of the account that creates the authors' accounts."""

EPILOG = """
\b
Examples:
  stream-server replay tweets.jsonl --data-dir ./data             as fast as the server accepts them
  stream-server replay tweets.jsonl --data-dir ./data --rate 50   50 a second
  stream-server replay tweets.jsonl --data-dir ./data --speed 60  an hour of the recording per minute

\b
A line is {"author": "ada", "message": "hello", "posted": "2026-01-31T12:00:00Z",
"location": [lon, lat], "place": "London"}; the last three are optional.
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", help="URL of the server; default: the one on --data-dir, else http://127.0.0.1:8000.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Statuses per second.")
@click.option("--speed", type=click.FloatRange(0, min_open=True), help="Factor of the recording's own pace.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=16, show_default=True, help="Parallel posts.")
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

    It creates accounts for the authors. The posts of one author keep their order.
    """
    if rate is not None and speed is not None:
        raise CommandFailure("give only one of --rate and --speed", USAGE)
    settings = config.load(flags)
    due = pacing.SteadyPace(rate) if rate else pacing.OriginalPace(speed) if speed else pacing.at_once
    run = ReplayRun(file, due, concurrency)
    try:
        asyncio.run(run.run(settings, server_access.server_address(url, settings)))
    except KeyboardInterrupt:
        run.tally.interrupted = True
    finally:
        if run.tally.total:
            Console().print(run.tally.table())
    context.exit(run.tally.exit_code)


@dataclass(slots=True)
class ReplayRun:
    """One replay of a file: it creates the accounts, then posts the statuses.

    Attributes:
        file: The recording.
        due: When each status is due.
        concurrency: Number of posts at the same time.
        tally: The results so far.
    """

    file: Path
    due: pacing.DueTime
    concurrency: int
    tally: ReplaySummary = field(default_factory=ReplaySummary)
    _console: Console = field(default_factory=lambda: Console(stderr=True))
    _run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    _user_ids: dict[str, str] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, settings: Config, url: str) -> None:
        """Replay until the end of the file, Ctrl-C or the loss of the server.

        The first Ctrl-C finishes the posts under way. Raises :class:`CommandFailure` if the server is lost.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        client = ApiClient(url, attempts=MAX_ATTEMPTS, connections=self.concurrency)
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

    async def _create_accounts(self, api: ApiClient, access: ServerAccess) -> dict[str, str]:
        """Create the accounts of all authors in batches; return each user id by the login in lower case.

        Count all lines, and print those that are unreadable.
        """
        accounts: dict[str, tuple[str, str]] = {}
        for found in recording.read_recording(self.file):
            self.tally.total += 1
            if isinstance(found, UnreadableLine):
                self.tally.unreadable += 1
                self._print_skipped_line(found.line, found.reason, self.tally.unreadable)
            else:
                login = author_names.login_of_author(found.author)
                accounts.setdefault(login.lower(), (login, author_names.name_of_author(found.author)))
        if not accounts:
            return {}
        admin = access.sign_token(
            await access.find_user(ADMIN_LOGIN, create=True), frozenset({"admin"}), TOKEN_TTL_SECONDS
        )
        return await api.create_users(list(accounts.values()), token=admin)

    async def _post_all(self, api: ApiClient, access: ServerAccess) -> None:
        """Post all statuses with parallel workers and a progress bar."""
        with self._progress() as progress:
            bar = progress.add_task("posting", total=self.tally.total - self.tally.unreadable)

            async def work(status: RecordedStatus) -> None:
                """Post one status unless the server is lost, and advance the bar."""
                if self.tally.server_lost is None:
                    await self._post(api, access, status)
                progress.advance(bar)

            async with OrderedWorkers(self.concurrency, work) as workers:
                await self._dispatch_when_due(workers)

    async def _dispatch_when_due(self, workers: OrderedWorkers[RecordedStatus]) -> None:
        """Give each status to the workers when it is due, until the end or a stop."""
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
        """Post one status as its author and count the result."""
        token = access.sign_token(
            self._user_ids[author_names.login_of_author(status.author).lower()], frozenset({"write"}), TOKEN_TTL_SECONDS
        )
        try:
            # The key names this run and line, so a repeated request is the same post.
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
        """Wait ``seconds``, or less if the replay is stopped."""
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    def _interrupt(self) -> None:
        """Stop the replay at the first Ctrl-C; the second one ends the program."""
        self.tally.interrupted = True
        self._stop.set()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)  # a second Ctrl-C ends the program at once

    def _print_skipped_line(self, line: int, reason: str, count: int) -> None:
        """Print why a line was not posted, unless ``count`` is over :data:`MAX_SHOWN_LINES`."""
        if count <= MAX_SHOWN_LINES:
            self._console.print(f"line {line}: {reason}", markup=False, highlight=False)
        if count == MAX_SHOWN_LINES:
            self._console.print("… further lines are only counted", markup=False)

    def _progress(self) -> Progress:
        """Return the progress bar."""
        columns = (TextColumn("posting"), BarColumn(), MofNCompleteColumn(), PostRateColumn(), TimeRemainingColumn())
        return Progress(*columns, console=self._console)


class PostRateColumn(ProgressColumn):
    """The column of the progress bar with the present posts per second."""

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        return Text(f"{task.speed or 0:,.0f}/s")
