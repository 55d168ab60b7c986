"""The command ``export``: write past events into a file, or all events into a rolling lake, for other programs."""

import asyncio
import gc
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from stream_server.client import Client
from stream_server.commands import server_access
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.export_files import ExportFile, need_arrow, open_export
from stream_server.commands.export_pages import ExportSummary, parse_until, read_pages
from stream_server.commands.lake import LakeWriter, follow_pages
from stream_server.commands.lake_erasure import Erased, Eraser
from stream_server.commands.lake_files import Lake, open_lake
from stream_server.commands.output import JSON_OPTION, OutputConsole, finish, print_json
from stream_server.commands.tail import STREAM_SCOPES, filter_options, filter_parameters
from stream_server.commands.token import parse_duration

MAX_EVERY_SECONDS = 3600
"""The longest time of a file of a lake: the folders are those of hours."""

FOREVER = datetime.max.replace(tzinfo=UTC)


class Duration(click.ParamType[int]):
    """A duration such as ``90`` (seconds), ``15m``, ``1h`` or ``1d``; the value is in seconds."""

    name = "duration"

    def __init__(self, most: int | None = None) -> None:
        """``most`` is the longest duration, in seconds."""
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seconds. Fails for another text, and for a duration that is too long."""
        if isinstance(value, int):
            return value
        try:
            seconds = parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._most is not None and seconds > self._most:
            self.fail(f"{value!r} is longer than {self._most} seconds", param, ctx)
        return seconds


LAKE_KINDS = "post,edit,delete"
"""The kinds that a lake has by default. Without edits, its files would keep the texts that authors replace."""

@click.command(
    epilog="""
\b
Examples:
  stream-server export --data-dir ./data --user ada --since -24h --to day.parquet
  stream-server export --token-file t --since 2026-11-01 --until 2026-12-01 --track tea --to tea.ndjson.zst
  stream-server export --token-file t --since -1h --kinds post,delete,like --to hour.ndjson.gz --json
  stream-server export --user ada --every 1h --erase-after 1d --to lake

\b
The name of the file decides its form: .ndjson, .jsonl or .csv, also with .gz or .zst behind it, or .parquet. The forms
.zst and .parquet need the extra `export`. The file gets its name when it is complete.

\b
With --every, --to is the folder of a lake, which gets a Parquet file for each hour (or less) until --until, Ctrl-C or
SIGTERM. These complete the present file. The next start goes on behind it. Without --kinds, a lake has edits, too.
"""
)
@click.option("--since", help="Where to start: a cursor, an ISO time, or -24h. A lake starts by default with the log.")
@click.option("--until", help="Where to end: now, an ISO time, or -15m. Default: now; for a lake, never.")
@click.option("--to", "target", required=True, type=click.Path(path_type=Path), help="The file, or the folder.")
@click.option("--every", type=Duration(MAX_EVERY_SECONDS), help="Write a lake, with a file for each 1h or 10m.")
@click.option("--erase-after", type=Duration(), help="Take deleted and replaced texts out of a lake in this time: 1d.")
@filter_options
@click.option("--firehose", is_flag=True, help="Everything public (scope firehose); the default without a filter.")
@click.option("--param", "more", multiple=True, metavar="NAME=VALUE", help="A parameter of a plugin's filter.")
@JSON_OPTION
@server_access.credential_options
def export(
    *, since: str | None, until: str | None, target: Path, every: int | None, erase_after: int | None, firehose: bool,
    more: tuple[str, ...], as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Write past events into a file, for notebooks and other programs. With --every, write all events into a lake.

    After a lost connection the command continues at the same position, so that each event is in the file once. If the
    log no longer has a part of the time, the summary says so.
    """
    parameters = filter_parameters(given, more)
    selecting = ("track", "follow", "locations", "rule", "rules", "sample")  # the other filters only narrow
    if firehose or not (more or any(name in parameters for name in selecting)):
        parameters["firehose"] = "true"
    if every is not None:
        parameters.setdefault("kinds", LAKE_KINDS)
    if every is None and erase_after is not None:
        raise CommandFailure("--erase-after is for a lake: give --every, too", USAGE)
    if every is None and since is None:
        raise CommandFailure("--since: say where to start, for example -24h", USAGE)
    try:
        end = parse_until(until, datetime.now(UTC)) if until else datetime.now(UTC) if every is None else FOREVER
    except (ValueError, OverflowError):
        raise CommandFailure(f"--until {until}: give `now`, a time such as 2026-12-31T18:00Z, or -15m", USAGE) from None
    client = server_access.open_client(given, STREAM_SCOPES)
    if every is not None:
        need_arrow()
        with open_lake(target, parameters) as lake:
            asyncio.run(_write_lake(client, lake, since, end, every, erase_after, as_json=as_json))
        return
    assert since is not None
    summary = ExportSummary(str(target))
    with open_export(target) as file:
        asyncio.run(_export(client, parameters, since, end, file, summary))
    summary.bytes = target.stat().st_size
    finish(summary, *summary.sentences(), as_json=as_json)


async def _write_lake(
    client: Client, lake: Lake, since: str | None, until: datetime, every: int, erase_after: int | None, *,
    as_json: bool,
) -> None:  # fmt: skip
    """Write a lake up to the time ``until``, SIGTERM or SIGINT, and print a line for each complete file."""
    console = OutputConsole()
    gc.freeze()  # the libraries stay: collections that visit them again and again cost a third of the time of an event

    def tell(result: ExportSummary | Erased) -> None:
        if as_json:
            print_json(result)
        else:
            console.print("\n".join(result.sentences()))

    errors = OutputConsole(stderr=True)
    if errors.is_terminal:
        errors.print(f"writing {lake.folder}; Ctrl-C completes the present file and ends", style="dim")
    writer = LakeWriter(lake, since, every, tell)
    eraser = None if erase_after is None else Eraser(lake, erase_after, tell)
    async with client:
        pages = read_pages(client, lake.notes.parameters, writer.cursor, until)
        work = asyncio.ensure_future(follow_pages(pages, writer, eraser))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        await asyncio.wait({work})
    try:
        if not work.cancelled():
            work.result()
    except OSError as error:
        raise CommandFailure(f"--to {lake.folder}: {error.strerror or error}") from None


async def _export(
    client: Client, parameters: dict[str, str], since: str, until: datetime, file: ExportFile, summary: ExportSummary
) -> None:
    progress = ExportProgress(until)
    with progress.bar:
        async with client:
            async for page in read_pages(client, parameters, since, until):
                file.write(page.events)
                summary.add(page.messages, page.cursor)
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
