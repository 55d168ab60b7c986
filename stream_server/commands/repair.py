"""``repair``: what in Redis is not as it should be, and mending it."""

import asyncio
import random
from collections import Counter
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from stream_server import config
from stream_server.commands import backstage, settings
from stream_server.commands.exits import FAILED, OK
from stream_server.commands.worker import SETTINGS
from stream_server.config import Config
from stream_server.jobs import Receivers
from stream_server.store.repair import Finding

SHOWN = 50
"""Findings that are told one by one; of more only their number."""

EPILOG = """
\b
Examples:
  stream-server repair --data-dir ./data --dry-run   only look
  stream-server repair --redis redis://10.0.0.5      look and mend

\b
Exit codes: 0 nothing was found, 1 something was, mended or not. Every server does this by itself, too, every
--repair-seconds; give this the --timeline-max, --pass-size and --log-max-entries of the servers.
"""


UNUSED = {"receivers", "log_max_seconds", "log_max_bytes"}
"""Settings of `worker` that matter to nothing here."""


@click.command(epilog=EPILOG, short_help="Find and mend what is not as it should be.")
@click.option("--dry-run", is_flag=True, help="Only look, and change nothing.")
@settings.options(*(name for name in SETTINGS if name not in UNUSED))
@click.pass_context
def repair(context: click.Context, /, dry_run: bool, **flags: Any) -> None:  # noqa: FBT001 - click's way
    """Look everything over, while the server runs: counters, timelines, what was left behind, parked jobs."""
    settled = backstage.find(config.load(flags))
    found = asyncio.run(look(settled, mend=not dry_run))
    console = Console(highlight=False)
    if not found:
        console.print("nothing is wrong")
        context.exit(OK)
    console.print(_table(found))
    kinds = Counter(finding.kind for finding in found)
    console.print(", ".join(f"{kind}: {count:,}" for kind, count in kinds.items()))
    console.print("nothing was changed (--dry-run)" if dry_run else "mended, but for what fails still")
    context.exit(FAILED)


async def look(settled: Config, *, mend: bool) -> list[Finding]:
    """All findings; with ``mend``, the jobs that mend are done when this returns."""
    columns = (TextColumn("looking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    async with backstage.store(settled) as store:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("looking", total=None)
            found = await store.repair.look(
                mend=mend, tell=lambda seen, of: progress.update(task, completed=seen, total=of)
            )
        if mend and found:
            receivers = Receivers(store.jobs, store.passes, random.Random())
            await receivers.empty()
            found += [Finding("parked", job, "fails still") for job in await store.jobs.parked()]
    return found


def _table(found: list[Finding]) -> Table:
    table = Table("what", "which", "how", box=None, pad_edge=False)
    for finding in found[:SHOWN]:
        table.add_row(*finding)
    if len(found) > SHOWN:
        table.add_row("…", f"{len(found) - SHOWN:,} more", "")
    return table
