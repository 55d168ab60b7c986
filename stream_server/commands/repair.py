"""``repair``: what in Redis is not as it should be, and mending it."""

import asyncio
import random
from collections import Counter
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from stream_server.commands import server_access, setting_options
from stream_server.commands.exit_codes import FAILED, OK
from stream_server.commands.worker import WORKER_SETTINGS
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.jobs.workers import JobWorkers
from stream_server.store.jobs.repair import RepairFinding

MAX_SHOWN_FINDINGS = 50
"""Findings that are told one by one; of more only their number."""

EPILOG = """
\b
Examples:
  stream-server repair --data-dir ./data --dry-run   only look
  stream-server repair --redis redis://10.0.0.5      look and mend

\b
Exit codes: 0 nothing was found, 1 something was, mended or not. Every server does this by itself, too, every
--repair-seconds; give this the --timeline-max, --fanout-batch-size and --log-max-entries of the servers.
"""


UNUSED_SETTINGS = {"job_workers", "log_max_seconds", "log_max_bytes"}
"""Settings of `worker` that matter to nothing here."""


@click.command(epilog=EPILOG, short_help="Find and mend what is not as it should be.")
@click.option("--dry-run", is_flag=True, help="Only look, and change nothing.")
@setting_options.options(*(name for name in WORKER_SETTINGS if name not in UNUSED_SETTINGS))
@click.pass_context
def repair(context: click.Context, /, dry_run: bool, **flags: Any) -> None:  # noqa: FBT001 - click's way
    """Look everything over, while the server runs: counters, timelines, what was left behind, parked jobs."""
    settled = server_access.with_server_redis(config.load(flags))
    found = asyncio.run(find_and_repair(settled, mend=not dry_run))
    console = Console(highlight=False)
    if not found:
        console.print("nothing is wrong")
        context.exit(OK)
    console.print(_findings_table(found))
    kinds = Counter(finding.kind for finding in found)
    console.print(", ".join(f"{kind}: {count:,}" for kind, count in kinds.items()))
    console.print("nothing was changed (--dry-run)" if dry_run else "mended, but for what fails still")
    context.exit(FAILED)


async def find_and_repair(settled: Config, *, mend: bool) -> list[RepairFinding]:
    """All findings; with ``mend``, the jobs that mend are done when this returns."""
    columns = (TextColumn("looking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    async with server_access.open_store(settled) as store:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("looking", total=None)
            found = await store.repair.run(
                fix=mend, on_progress=lambda seen, of: progress.update(task, completed=seen, total=of)
            )
        if mend and found:
            receivers = JobWorkers(store.job_queue, store.job_runner, random.Random())
            await receivers.run_until_empty()
            found += [RepairFinding("parked", job, "fails still") for job in await store.job_queue.list_parked()]
    return found


def _findings_table(found: list[RepairFinding]) -> Table:
    table = Table("what", "which", "how", box=None, pad_edge=False)
    for finding in found[:MAX_SHOWN_FINDINGS]:
        table.add_row(*finding)
    if len(found) > MAX_SHOWN_FINDINGS:
        table.add_row("…", f"{len(found) - MAX_SHOWN_FINDINGS:,} more", "")
    return table
