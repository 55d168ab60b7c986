"""The command ``worker``: run job workers without a server, beside servers that have none or too few.

The command ``repair`` is here, too.
"""

import asyncio
import signal
from collections import Counter
from contextlib import suppress
from typing import Any

import click
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from stream_server.commands import server_access, setting_options
from stream_server.commands.exit_codes import FAILED, OK
from stream_server.commands.output import JSON_OPTION, OutputConsole, finish
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.runtime import output_thread
from stream_server.store.jobs.expiry import make_expiry_loop
from stream_server.store.jobs.repair import RepairFinding
from stream_server.store.jobs.upkeep import IdleHomesLoop, LogTrimmer
from stream_server.store.jobs.workers import JobWorkers
from stream_server.store.log.retention import RetentionLimits


@click.command(
    epilog="""
\b
Examples:
  stream-server worker --redis redis://10.0.0.5 --job-workers 4
  stream-server worker --data-dir ./data          beside the server on that folder

\b
With --data-dir it takes --timeline-max, --fanout-batch-size, --log-max-… and --home-idle-days
from the server. With --redis, give it those of the servers. Always give it their --status-….
""",
    short_help="Do background jobs without a server.",
)
@JSON_OPTION
@setting_options.options(
    *server_access.STORE_SETTINGS, "job_workers", "log_max_seconds", "log_max_bytes", "status_max_days",
    "status_archive_dir", "home_idle_days",
)  # fmt: skip
def worker(*, as_json: bool, **flags: Any) -> None:
    """Do background jobs (adding posts to timelines, removing deleted ones, rebuilding timelines), and trim the log.

    With --status-max-days it also archives and removes old statuses, and with --home-idle-days it removes the home
    timelines of users who stay away. Every server does the same, but one with --job-workers 0 only trims the log.
    Ctrl-C or SIGTERM stops the command. Another worker or the next start continues unfinished jobs.
    """
    output_thread.use_for_standard_output()
    settings = server_access.with_server_redis(server_access.find_server(config.load(flags)))
    done = asyncio.run(run_worker(settings, OutputConsole(stderr=as_json)))
    finish(done, as_json=as_json)


async def run_worker(settings: Config, console: OutputConsole) -> dict[str, int]:
    """Run job workers and the trimmer until SIGTERM or SIGINT, and show the progress. Return the counts at the end."""
    async with server_access.open_store(settings) as store:
        job_workers, loop = JobWorkers(store.job_queue, store.job_runner), asyncio.get_running_loop()
        limits = RetentionLimits(settings.log_max_seconds, settings.log_max_bytes)
        work = (
            _show_progress(job_workers, console), job_workers.run(settings.job_workers or 1),
            LogTrimmer(store.retention, limits, store.subscriptions).run(),
            IdleHomesLoop(store.idle_homes, settings.home_idle_days).run(),
            make_expiry_loop(store.expiry, settings.status_max_days, settings.status_archive_dir).run(),
        )  # fmt: skip
        tasks = [asyncio.create_task(each) for each in work]
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, tasks[0].cancel)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        return _counts(job_workers)


async def _show_progress(job_workers: JobWorkers, console: OutputConsole) -> None:
    console.print("processing jobs; press Ctrl-C to stop", style="dim")
    try:
        with Live(_format_progress(job_workers), console=console, auto_refresh=False, transient=True) as live:
            while True:
                await asyncio.sleep(0.5)
                live.update(_format_progress(job_workers), refresh=console.is_terminal)
    finally:
        console.print(_format_progress(job_workers))


def _counts(job_workers: JobWorkers) -> dict[str, int]:
    depth = job_workers.queue_depth
    return {
        "jobs_done": job_workers.jobs_done, "batches": job_workers.passes_done, "failed": job_workers.failed_passes,
        "due": depth.due, "parked": depth.parked,
    }  # fmt: skip


def _format_progress(job_workers: JobWorkers) -> Text:
    return Text(" · ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in _counts(job_workers).items()))


MAX_SHOWN_FINDINGS = 50


@click.command(
    epilog="""
\b
Examples:
  stream-server repair --data-dir ./data --dry-run   only report
  stream-server repair --redis redis://10.0.0.5      report and repair

\b
Exit codes: 0 no faults, 1 faults, repaired or not. Every server does the same automatically every
hour. With --redis, give this command the --timeline-max and --fanout-batch-size of the servers.
""",
    short_help="Find and repair faults in Redis.",
)
@click.option("--dry-run", is_flag=True, help="Only report the faults, and change nothing.")
@setting_options.options(*server_access.STORE_SETTINGS)
@JSON_OPTION
def repair(*, dry_run: bool, as_json: bool, **flags: Any) -> None:
    """Find and repair wrong counters and timelines, remains of deleted data, failed jobs. Servers may keep running."""
    settings = server_access.with_server_redis(server_access.find_server(config.load(flags)))
    found = asyncio.run(find_and_repair(settings, fix=not dry_run))
    kinds = Counter(finding.kind for finding in found)
    table = Table("fault", "where", "details", box=None, pad_edge=False)
    for finding in found[:MAX_SHOWN_FINDINGS]:
        table.add_row(*finding)
    if len(found) > MAX_SHOWN_FINDINGS:
        table.add_row("…", f"{len(found) - MAX_SHOWN_FINDINGS:,} more", "")
    shown = [
        table, ", ".join(f"{kind}: {count:,}" for kind, count in kinds.items()),
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
            await JobWorkers(store.job_queue, store.job_runner).run_until_empty()
            found += [RepairFinding("parked", job, "still fails") for job in await store.job_queue.list_parked()]
    return found
