"""``worker``: receivers of jobs and nothing else, beside servers that have none, or too few."""

import asyncio
import random
import signal
from contextlib import suppress
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from stream_server.commands import server_access, setting_options
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.jobs.trimmer import LogTrimmer
from stream_server.jobs.workers import JobWorkers
from stream_server.store.log.retention import RetentionLimits

REFRESH_SECONDS = 0.5
"""How often the line is written anew."""

WORKER_SETTINGS = (
    "redis", "data_dir", "job_workers", "timeline_max", "fanout_batch_size", "log_max_entries", "log_max_seconds",
    "log_max_bytes", "redis_timeout_seconds", "settings_file",
)  # fmt: skip

EPILOG = """
\b
Examples:
  stream-server worker --redis redis://10.0.0.5 --job-workers 4
  stream-server worker --data-dir ./data          beside the server on that folder

\b
Give it the --timeline-max, --fanout-batch-size and --log-max-… of the servers.
"""


@click.command(epilog=EPILOG, short_help="Do what writes have left to be done.")
@setting_options.options(*WORKER_SETTINGS)
def worker(**flags: Any) -> None:
    """Do what writes have left to be done: timelines of many followers, clean-ups, refills; and trim the log.

    Every server does so too unless it has --job-workers 0. Ends at Ctrl-C or SIGTERM; what it was about is done by
    another, or by the next one.
    """
    settled = server_access.with_server_redis(config.load(flags))
    asyncio.run(run_worker(settled, Console(highlight=False)))


async def run_worker(settled: Config, console: Console) -> None:
    """Receive until SIGTERM or SIGINT, and show what was done."""
    async with server_access.open_store(settled) as store:
        receivers = JobWorkers(store.job_queue, store.job_runner, random.Random())
        trimmer = LogTrimmer(
            store.retention, RetentionLimits(settled.log_max_seconds, settled.log_max_bytes), random.Random()
        )
        line = asyncio.create_task(_show_progress(receivers, console), name="worker: line")
        duties = [
            asyncio.create_task(receivers.run(settled.job_workers or 1), name="receivers"),
            asyncio.create_task(trimmer.run(), name="trimmer"),
            line,
        ]
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, line.cancel)
        await asyncio.wait(duties, return_when=asyncio.FIRST_COMPLETED)
        for duty in duties:
            duty.cancel()
        for duty in duties:
            with suppress(asyncio.CancelledError):
                await duty


async def _show_progress(job_workers: JobWorkers, console: Console) -> None:
    console.print("receiving jobs; Ctrl-C ends it", style="dim")
    try:
        with Live(_format_progress(job_workers), console=console, auto_refresh=False, transient=True) as live:
            while True:
                await asyncio.sleep(REFRESH_SECONDS)
                live.update(_format_progress(job_workers), refresh=console.is_terminal)
    finally:
        console.print(_format_progress(job_workers))


def _format_progress(job_workers: JobWorkers) -> Text:
    waiting = job_workers.queue_depth
    parts = [
        f"jobs done {job_workers.jobs_done:,}", f"passes {job_workers.passes_done:,}", f"failed {job_workers.failed_passes:,}",
        f"due {waiting.due:,}", f"parked {waiting.parked:,}",
    ]  # fmt: skip
    return Text(" · ".join(parts))
