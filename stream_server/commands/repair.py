"""The command ``repair``: find and repair faults in Redis."""

import asyncio
import random
from collections import Counter
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from stream_server.commands import server_access, setting_options
from stream_server.commands.exit_codes import FAILED, OK
from stream_server.commands.output import JSON_OPTION, OutputConsole, finish
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.jobs.workers import JobWorkers
from stream_server.store.jobs.repair import RepairFinding

MAX_SHOWN_FINDINGS = 50

EPILOG = """
\b
Examples:
  stream-server repair --data-dir ./data --dry-run   only report
  stream-server repair --redis redis://10.0.0.5      report and repair

\b
Exit codes: 0 no faults, 1 faults, repaired or not. Every server does the same automatically every
hour. Give this command the --timeline-max and --fanout-batch-size of the servers.
"""


@click.command(epilog=EPILOG, short_help="Find and repair faults in Redis.")
@click.option("--dry-run", is_flag=True, help="Only report the faults, and change nothing.")
@setting_options.options(*server_access.STORE_SETTINGS)
@JSON_OPTION
def repair(*, dry_run: bool, as_json: bool, **flags: Any) -> None:
    """Find and repair wrong counters and timelines, remains of deleted data, failed jobs. Servers may keep running."""
    settings = server_access.with_server_redis(config.load(flags))
    found = asyncio.run(find_and_repair(settings, fix=not dry_run))
    kinds = Counter(finding.kind for finding in found)
    shown = [
        _findings_table(found), ", ".join(f"{kind}: {count:,}" for kind, count in kinds.items()),
        "nothing was changed (--dry-run)" if dry_run else "repaired, except what still fails",
    ] if found else ["no faults found"]  # fmt: skip
    result = {"faults": [finding._asdict() for finding in found], "dry_run": dry_run}
    finish(result, *shown, as_json=as_json, code=FAILED if found else OK)


async def find_and_repair(settings: Config, *, fix: bool) -> list[RepairFinding]:
    """Return the faults found in the server's Redis. With ``fix``, also repair them and run the jobs this creates."""
    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    async with server_access.open_store(settings) as store:
        with Progress(*columns, console=OutputConsole(stderr=True), transient=True) as bar:
            task = bar.add_task("checking", total=None)
            found = await store.repair.run(fix=fix, on_progress=lambda n, of: bar.update(task, completed=n, total=of))
        if fix and found:
            await JobWorkers(store.job_queue, store.job_runner, random.Random()).run_until_empty()
            found += [RepairFinding("parked", job, "still fails") for job in await store.job_queue.list_parked()]
    return found


def _findings_table(found: list[RepairFinding]) -> Table:
    table = Table("fault", "where", "details", box=None, pad_edge=False)
    for finding in found[:MAX_SHOWN_FINDINGS]:
        table.add_row(*finding)
    if len(found) > MAX_SHOWN_FINDINGS:
        table.add_row("…", f"{len(found) - MAX_SHOWN_FINDINGS:,} more", "")
    return table
