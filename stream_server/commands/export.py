"""The command ``export``: write past events into a file for notebooks and other programs."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from stream_server.client import Client
from stream_server.commands import credentials, past_events, server_access, setting_options
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.export_files import ExportFile, open_export
from stream_server.commands.output import JSON_OPTION, OutputConsole, print_json
from stream_server.commands.tail import STREAM_SCOPES, filter_options, filter_parameters
from stream_server.config import config

BASES = ("track", "follow", "locations", "rule", "rules", "sample")
"""The filters that select events. Without one of them, and without `--param`, the export is the firehose."""

EPILOG = """
\b
Examples:
  stream-server export --data-dir ./data --user ada --since -24h --to day.parquet
  stream-server export --token-file t --since 2026-11-01 --until 2026-12-01 --track tea --to tea.ndjson.zst
  stream-server export --token-file t --since -1h --kinds post,delete,like --to hour.ndjson.gz --json

\b
The name of the file decides its form: .ndjson, .jsonl or .csv, also with .gz or .zst behind it, or .parquet. The forms
.zst and .parquet need the extra `export`. The file gets its name when it is complete.
"""


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

    def add(self, page: past_events.Page) -> None:
        """Count a page."""
        self.events += len(page.events)
        self.cursor = page.cursor
        self.gaps.extend(Gap(gap["reason"], gap.get("count")) for gap in page.gaps)
        if page.events:
            self.first = self.first or page.events[0]["at"]
            self.last = page.events[-1]["at"]

    def sentences(self) -> list[str]:
        """Return the summary for people."""
        span = f" from {self.first} to {self.last}" if self.events else ""
        gaps = [
            f"not in the file: {'an unknown number of' if gap.count is None else f'{gap.count:,}'} entries of the log"
            f" ({gap.reason})"
            for gap in self.gaps
        ]
        return [f"{self.file}: {self.events:,} events{span}, {self.bytes:,} bytes", *gaps]


@click.command(epilog=EPILOG)
@click.option("--since", required=True, help="Where to start: a cursor, an ISO time, or -24h.")
@click.option("--until", default="now", show_default=True, help="Where to end: now, an ISO time, or -15m.")
@click.option("--to", "target", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The file.")
@filter_options
@click.option("--firehose", is_flag=True, help="Everything public (scope firehose); the default without a filter.")
@click.option("--param", "more", multiple=True, metavar="NAME=VALUE", help="A parameter of a plugin's filter.")
@JSON_OPTION
@credentials.credential_options
def export(
    *, since: str, until: str, target: Path, firehose: bool, more: tuple[str, ...], as_json: bool, **given: Any
) -> None:
    """Write past events into a file, for notebooks and other programs.

    After a lost connection the command continues at the same position, so that each event is in the file once. If the
    log no longer has a part of the time, the summary says so.
    """
    parameters = filter_parameters(given, more)
    if firehose or not (more or any(name in parameters for name in BASES)):
        parameters["firehose"] = "true"
    try:
        end = past_events.parse_until(until, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise CommandFailure(f"--until {until}: give `now`, a time such as 2026-12-31T18:00Z, or -15m", USAGE) from None
    settings = config.load({name: given[name] for name in setting_options.ACCESS_SETTINGS})
    token = credentials.token_source(given, settings, STREAM_SCOPES)
    client = Client(server_access.server_address(given["url"], settings), token)
    summary = ExportSummary(str(target))
    with open_export(target) as file:
        asyncio.run(_export(client, parameters, since, end, file, summary))
    summary.bytes = target.stat().st_size
    if as_json:
        print_json(summary)
    else:
        for sentence in summary.sentences():
            OutputConsole().print(sentence)


async def _export(
    client: Client, parameters: dict[str, str], since: str, until: datetime, file: ExportFile, summary: ExportSummary
) -> None:
    progress = ExportProgress(until)
    with progress.bar:
        async with client:
            async for page in past_events.read_pages(client, parameters, since, until):
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
