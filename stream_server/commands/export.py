"""The command ``export``: write past events into a file for notebooks and other programs.

The events are read page by page, by long polling.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from stream_server.client import Backoff, Client, RequestRefused, StreamEnded, Unreachable
from stream_server.client.connection import fits_in_url
from stream_server.commands import server_access
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.export_files import ExportFile, open_export
from stream_server.commands.output import JSON_OPTION, OutputConsole, finish
from stream_server.commands.tail import STREAM_SCOPES, filter_options, filter_parameters

PAGE_EVENTS = 1000

PAGE_WAIT_SECONDS = 20

_AGE = re.compile(r"-(\d{1,9})([smhd])")


class Page(NamedTuple):
    """Events that came together, the gaps before or between them, and where to go on behind them.

    ``cursor`` is the cursor of the last event. If there is none up to the end, it is where the reading began, as a
    cursor or a time.
    """

    events: list[dict[str, Any]]
    gaps: list[dict[str, Any]]
    cursor: str


def parse_until(text: str, now: datetime) -> datetime:
    """Return the time that ``text`` means: ``now``, an age such as ``-15m``, or an ISO 8601 time, by default in UTC.

    Raises ValueError for another text.
    """
    if text == "now":
        return now
    age = _AGE.fullmatch(text)
    if age:
        seconds = int(age[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[age[2]]
        return datetime.fromtimestamp(now.timestamp() - seconds, UTC)
    parsed = datetime.fromisoformat(text)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


async def read_pages(client: Client, parameters: Mapping[str, str], since: str, until: datetime) -> AsyncIterator[Page]:
    """Yield the events after ``since`` up to the time ``until``, page by page.

    If ``until`` is in the future, wait for it. After the first page a lost connection, and a server that is away or
    busy, only delay the next one: nothing is missed or repeated. Raises what a request of the client raises, and
    :class:`StreamEnded` if a goodbye of the server forbids another request.
    """
    cursor, is_first, backoff, failures = since, True, Backoff(), 0
    begin = until.isoformat(timespec="milliseconds") if _AGE.fullmatch(since) else since  # an age soon is another time
    while True:
        seconds_left = until.timestamp() - time.time()
        wait = min(PAGE_WAIT_SECONDS, max(0, seconds_left))
        query = {**parameters, "since": cursor, "limit": str(PAGE_EVENTS), "wait": f"{wait:.3f}"}
        try:
            answer = await _ask(client, query, wait + 30)
        except (RequestRefused, Unreachable) as error:
            if is_first or not error.is_temporary:
                raise
            await asyncio.sleep(backoff.delay(failures, error.retry_after))
            failures += 1
            continue
        page = _cut(answer, until, begin if is_first else cursor)
        yield page
        is_first, failures, cursor = False, 0, answer["cursor"]
        if page.cursor != cursor or (seconds_left <= 0 and not answer["more"]):
            return
        for goodbye in (event for event in answer["events"] if event["kind"] == "goodbye"):
            if goodbye.get("retry_after") is None:
                raise StreamEnded(str(goodbye.get("code", "")), str(goodbye.get("reason", "")))
            await asyncio.sleep(goodbye["retry_after"])


async def _ask(client: Client, query: Mapping[str, str], seconds: float) -> dict[str, Any]:
    """Return one page. Long filters go in a body, because servers and proxies limit URLs."""
    if fits_in_url(query):
        answer: dict[str, Any] = await client.request("GET", "/v1/events", query=query, seconds=seconds)
    else:
        answer = await client.request("POST", "/v1/events", body=query, seconds=seconds, is_read=True)
    return answer


def _cut(answer: dict[str, Any], until: datetime, begin: str) -> Page:
    """Return the events of an answer up to the time ``until``, as a page. The answer begins after the cursor ``begin``.

    Later events are left out, so the page's cursor is before them.
    """
    gaps = [event for event in answer["events"] if event["kind"] == "gap"]
    events = [event for event in answer["events"] if event["kind"] not in {"gap", "goodbye", "warning"}]
    in_time = [event for event in events if datetime.fromisoformat(event["at"]) <= until]
    if len(in_time) == len(events):
        return Page(in_time, gaps, answer["cursor"])
    return Page(in_time, gaps, in_time[-1]["cursor"] if in_time else begin)


class Gap(msgspec.Struct):
    """Events that the server could not deliver: why, and how many log entries if that is known."""

    reason: str
    count: int | None


class ExportSummary(msgspec.Struct):
    """The result of an export. ``cursor`` continues the export: give it to ``--since`` of the next one.

    It is where the last event of the file stands, and not where the events stand that came with it and are too late.
    """

    file: str
    events: int = 0
    bytes: int = 0
    first: str | None = None
    last: str | None = None
    cursor: str | None = None
    gaps: list[Gap] = []

    def add(self, page: Page) -> None:
        """Count a page."""
        self.events += len(page.events)
        self.cursor = page.cursor
        self.gaps.extend(Gap(gap["reason"], gap.get("count")) for gap in page.gaps)
        if page.events:
            self.first = self.first or page.events[0]["at"]
            self.last = page.events[-1]["at"]

    def sentences(self) -> list[str]:
        """Return the summary in words: the number and time of the events, and what is missing."""
        span = f" from {self.first} to {self.last}" if self.events else ""
        gaps = [
            f"not in the file: {'an unknown number of' if gap.count is None else f'{gap.count:,}'} entries of the log"
            f" ({gap.reason})"
            for gap in self.gaps
        ]
        return [f"{self.file}: {self.events:,} events{span}, {self.bytes:,} bytes", *gaps]


@click.command(
    epilog="""
\b
Examples:
  stream-server export --data-dir ./data --user ada --since -24h --to day.parquet
  stream-server export --token-file t --since 2026-11-01 --until 2026-12-01 --track tea --to tea.ndjson.zst
  stream-server export --token-file t --since -1h --kinds post,delete,like --to hour.ndjson.gz --json

\b
The name of the file decides its form: .ndjson, .jsonl or .csv, also with .gz or .zst behind it, or .parquet. The forms
.zst and .parquet need the extra `export`. The file gets its name when it is complete.
"""
)
@click.option("--since", required=True, help="Where to start: a cursor, an ISO time, or -24h.")
@click.option("--until", default="now", show_default=True, help="Where to end: now, an ISO time, or -15m.")
@click.option("--to", "target", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The file.")
@filter_options
@click.option("--firehose", is_flag=True, help="Everything public (scope firehose); the default without a filter.")
@click.option("--param", "more", multiple=True, metavar="NAME=VALUE", help="A parameter of a plugin's filter.")
@JSON_OPTION
@server_access.credential_options
def export(
    *, since: str, until: str, target: Path, firehose: bool, more: tuple[str, ...], as_json: bool, **given: Any
) -> None:
    """Write past events into a file, for notebooks and other programs.

    After a lost connection the command continues at the same position, so that each event is in the file once. If the
    log no longer has a part of the time, the summary says so.
    """
    parameters = filter_parameters(given, more)
    selecting = ("track", "follow", "locations", "rule", "rules", "sample")  # the other filters only narrow
    if firehose or not (more or any(name in parameters for name in selecting)):
        parameters["firehose"] = "true"
    try:
        end = parse_until(until, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise CommandFailure(f"--until {until}: give `now`, a time such as 2026-12-31T18:00Z, or -15m", USAGE) from None
    client = server_access.open_client(given, STREAM_SCOPES)
    summary = ExportSummary(str(target))
    with open_export(target) as file:
        asyncio.run(_export(client, parameters, since, end, file, summary))
    summary.bytes = target.stat().st_size
    finish(summary, *summary.sentences(), as_json=as_json)


async def _export(
    client: Client, parameters: dict[str, str], since: str, until: datetime, file: ExportFile, summary: ExportSummary
) -> None:
    progress = ExportProgress(until)
    with progress.bar:
        async with client:
            async for page in read_pages(client, parameters, since, until):
                file.write(page.events)
                summary.add(page)
                progress.show(summary)


class ExportProgress:
    """The progress bar, on standard error and only on a terminal. The share is that of the time."""

    def __init__(self, until: datetime) -> None:
        console = OutputConsole(stderr=True)
        columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self.bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self._until = until
        self._task = self.bar.add_task("connecting", total=None)

    def show(self, summary: ExportSummary) -> None:
        """Show how far the export is."""
        if summary.first is None or summary.last is None:
            return
        start, reached = (datetime.fromisoformat(at).timestamp() for at in (summary.first, summary.last))
        text = f"{summary.events:,} events, up to {summary.last[:19]}"
        total = max(0.001, self._until.timestamp() - start)
        self.bar.update(self._task, total=total, completed=reached - start, description=text)
