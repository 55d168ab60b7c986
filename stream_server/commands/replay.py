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

from stream_server import config
from stream_server.client import ApiClient, ClientFailure, Refused
from stream_server.commands import accounts, backstage, pace, recording, settings
from stream_server.commands.backstage import Backstage
from stream_server.commands.exits import UNREACHABLE, USAGE, Failure
from stream_server.commands.lanes import Lanes
from stream_server.commands.recording import Recorded, Unreadable
from stream_server.commands.tally import Tally
from stream_server.config import Config

TOLD = 20
"""Lines that were not posted are told one by one up to so many, then only counted."""

TTL_SECONDS = 600
"""Tokens are signed anew for each post, and outlive its repetitions."""

ATTEMPTS = 10
"""A post is tried so often, for about 20 s in all: as long as a server takes to start again on much data."""

ADMINISTRATOR = "replay"
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
@settings.options(*settings.BACKSTAGE)
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
        raise Failure("--rate and --speed contradict each other: give one of them", USAGE)
    settled = config.load(flags)
    due = pace.Steady(rate) if rate else pace.Original(speed) if speed else pace.at_once
    run = Replay(file, due, concurrency)
    try:
        asyncio.run(run.run(settled, backstage.address(url, settled)))
    except KeyboardInterrupt:
        run.tally.interrupted = True
    finally:
        if run.tally.total:
            Console().print(run.tally.table())
    context.exit(run.tally.exit_code)


@dataclass(slots=True)
class Replay:
    """One replay of a file: accounts first, then the posts."""

    file: Path
    due: pace.Due
    concurrency: int
    tally: Tally = field(default_factory=Tally)
    _console: Console = field(default_factory=lambda: Console(stderr=True))
    _name: str = field(default_factory=lambda: secrets.token_hex(8))
    _ids: dict[str, str] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, settled: Config, url: str) -> None:
        """Do it, until the end of the file, Ctrl-C (once: what is under way is finished), or the loss of the server."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        client = ApiClient(url, attempts=ATTEMPTS, connections=self.concurrency)
        async with backstage.opened(settled) as stage, client as api:
            self._ids = await self._accounts(api, stage)
            started = loop.time()
            try:
                await self._post_all(api, stage)
            finally:
                self.tally.seconds = loop.time() - started
                self.tally.repeated = api.repeats
        if self.tally.lost is not None:
            raise Failure(self.tally.lost, UNREACHABLE)

    async def _accounts(self, api: ApiClient, stage: Backstage) -> dict[str, str]:
        """Lower-case login → user id of everyone in the file, made in batches; tells what cannot be read."""
        people: dict[str, tuple[str, str]] = {}
        for found in recording.read(self.file):
            self.tally.total += 1
            if isinstance(found, Unreadable):
                self.tally.unreadable += 1
                self._tell(found.line, found.reason, self.tally.unreadable)
            else:
                login = accounts.login(found.author)
                people.setdefault(login.lower(), (login, accounts.name(found.author)))
        if not people:
            return {}
        admin = stage.token(await stage.user(ADMINISTRATOR, create=True), frozenset({"admin"}), TTL_SECONDS)
        return await api.add_users(list(people.values()), token=admin)

    async def _post_all(self, api: ApiClient, stage: Backstage) -> None:
        with self._progress() as progress:
            bar = progress.add_task("posting", total=self.tally.total - self.tally.unreadable)

            async def work(status: Recorded) -> None:
                if self.tally.lost is None:
                    await self._post(api, stage, status)
                progress.advance(bar)

            async with Lanes(self.concurrency, work) as lanes:
                await self._read_on(lanes)

    async def _read_on(self, lanes: Lanes[Recorded]) -> None:
        """Hand each status over when it is due, until the end or a stop."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        statuses = (found for found in recording.read(self.file) if isinstance(found, Recorded))
        for number, status in enumerate(statuses):
            wait = started + self.due(number, status.posted) - loop.time()
            if wait > 0:
                await self._stopped_within(wait)
            if self._stop.is_set():
                return
            await lanes.put(status.author, status)

    async def _post(self, api: ApiClient, stage: Backstage, status: Recorded) -> None:
        token = stage.token(self._ids[accounts.login(status.author).lower()], frozenset({"write"}), TTL_SECONDS)
        try:
            # The key names the line of this run: a repetition of the request is the same post.
            await api.post(**status.body, token=token, key=f"{self._name}-{status.line}")
        except Refused as refused:
            self.tally.refused += 1
            self._tell(status.line, f"refused: {refused}", self.tally.refused)
        except ClientFailure as error:
            self.tally.lost = str(error)
            self._stop.set()
        else:
            self.tally.posted += 1

    async def _stopped_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    def _interrupt(self) -> None:
        self.tally.interrupted = True
        self._stop.set()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)  # the second one ends it at once

    def _tell(self, line: int, reason: str, count: int) -> None:
        if count <= TOLD:
            self._console.print(f"line {line}: {reason}", markup=False, highlight=False)
        if count == TOLD:
            self._console.print("… more like these are only counted", markup=False)

    def _progress(self) -> Progress:
        columns = (TextColumn("posting"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
        return Progress(*columns, console=self._console)


class Rate(ProgressColumn):
    """Posts a second, lately."""

    def render(self, task: Task) -> Text:
        """The column's text."""
        return Text(f"{task.speed or 0:,.0f}/s")
