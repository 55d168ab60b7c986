"""The command ``stats``: a live table of a running server: its workers, streams, rates, lag, Redis and log."""

import asyncio
from typing import Any

import click
import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stream_server.client import Client
from stream_server.commands import server_access
from stream_server.commands.output import JSON_OPTION, OutputConsole, escape_controls, print_json
from stream_server.monitoring.operations import HostState

Rows = list[tuple[str, ...]]

SHOWN_ROWS = 5
"""Most slow clients, limits and errors that are shown."""


@click.command(
    epilog="""
\b
Examples:
  stream-server stats --data-dir ./data --user ada          until Ctrl-C
  stream-server stats --data-dir ./data --user ada --once
  stream-server stats --token-file admin.jwt --url https://stream.example.org --json | jq .redis

\b
A given token needs the scope admin. --json prints the answer of GET /v1/admin/operations, one line for each look.
Without a terminal there is one look, unless --every is given.
"""
)
@click.option("--every", type=click.FloatRange(0.2, 3600), help="Seconds between two looks; 2 on a terminal.")
@click.option("--once", is_flag=True, help="Print the state once and end; the default without a terminal.")
@JSON_OPTION
@server_access.credential_options
def stats(*, every: float | None, once: bool, as_json: bool, **given: Any) -> None:
    """Show what a running server does: workers, streams, rates, lag, Redis, the log, slow clients, limits and errors.

    For each worker: its streams, those that are behind the log, entries of the log per second, events written per
    second, lag, longest hold of its event loop in the last minute, memory, and processor time. Rates are computed from
    two answers of the server, so the first table has none.
    """
    client = server_access.open_client(given, frozenset({"admin"}))
    console = OutputConsole()
    seconds = 2.0 if every is None else every
    if as_json:
        asyncio.run(_print_lines(client, seconds, once=once or (every is None and not console.is_terminal)))
    else:
        asyncio.run(_show(client, seconds, console, once=once or not console.is_terminal))


async def _print_lines(client: Client, every: float, *, once: bool) -> None:
    async with client:
        while True:
            print_json(await client.request("GET", "/v1/admin/operations"))
            if once:
                return
            await asyncio.sleep(every)


async def _show(client: Client, every: float, console: OutputConsole, *, once: bool) -> None:
    """Print the table once, or keep it on the terminal until Ctrl-C."""
    before: HostState | None = None
    async with client:
        if once:
            console.print(render_state(await _look(client), None, 0))
            return
        clock = asyncio.get_running_loop().time
        looked_at = clock()
        with Live(console=console, auto_refresh=False, transient=False) as live:
            while True:
                now, seconds = await _look(client), clock() - looked_at
                looked_at += seconds
                live.update(render_state(now, before, seconds), refresh=True)
                before = now
                await asyncio.sleep(every)


async def _look(client: Client) -> HostState:
    answer = await client.request("GET", "/v1/admin/operations")
    return msgspec.convert(answer, HostState)


def render_state(now: HostState, before: HostState | None, seconds: float) -> RenderableType:
    """Return the state as tables. Rates are those of the ``seconds`` since ``before``; without it there are none."""
    parts: list[RenderableType] = [_workers_table(now, before, seconds)]
    limit = f" of {now.redis.memory_limit_bytes / 2**20:,.0f}" if now.redis.memory_limit_bytes else ""
    alarm = " MEMORY ALARM" if now.redis.memory_alarm else ""
    parts.append(Text(
        f"redis {now.redis.memory_bytes / 2**20:,.0f}{limit} MiB{alarm}, {now.redis.reconnects} reconnects · "
        f"log {now.log.entries:,} entries, {now.log.bytes / 2**20:,.0f} MiB, {now.log.age_seconds / 3600:,.1f} h · "
        f"jobs {now.jobs.due} due, {now.jobs.parked} parked"
    ))  # fmt: skip
    for title, columns, rows in _lists(now):
        if rows:
            parts.append(_table(title, columns, rows))
    return Group(*parts)


def _workers_table(now: HostState, before: HostState | None, seconds: float) -> Table:
    earlier = {} if before is None else {worker.pid: worker for worker in before.workers}
    rows: Rows = []
    for worker in now.workers:
        then, span = earlier.get(worker.pid, worker), seconds if worker.pid in earlier else 0.0
        open_now, cpu_seconds = worker.streams, worker.cpu_seconds - then.cpu_seconds
        streams = open_now.sse + open_now.ndjson + open_now.websocket + open_now.v1 + open_now.v2
        rows.append((
            str(worker.worker), "ready" if worker.ready else "NOT READY", f"{streams:,}",
            f"{worker.catching_up:,}", _rate(worker.events_published - then.events_published, span),
            _rate(worker.events_delivered - then.events_delivered, span), f"{worker.lag_ms:,} ms",
            f"{worker.loop_blocked_seconds * 1000:,.0f} ms", f"{worker.memory_bytes / 2**20:,.0f} MiB",
            f"{cpu_seconds / span:.0%}" if span else "-",
            _rate(worker.requests - then.requests, span),
        ))  # fmt: skip
    columns = ("worker", "", "streams", "behind", "in/s", "out/s", "lag", "hold", "memory", "CPU", "requests/s")
    return _table(f"{now.at[11:19]} UTC", columns, rows)


def _rate(increase: float, seconds: float) -> str:
    return f"{increase / seconds:,.1f}" if seconds else "-"


def _lists(now: HostState) -> list[tuple[str, tuple[str, ...], Rows]]:
    """Return the lists below the workers: title, columns, and the first rows."""
    slow: Rows = [
        (
            c.connection, str(c.worker), c.uid or f"reader {c.reader}", f"{c.path}?{c.parameters}", f"{c.behind:,}",
            f"{c.percent} %",
        )
        for c in now.slow_clients[:SHOWN_ROWS]
    ]  # fmt: skip
    limits: Rows = [(limit.limit, f"{limit.count:,}", limit.last[11:19]) for limit in now.limits[:SHOWN_ROWS]]
    errors: Rows = [
        (e.at[11:19], str(e.worker), e.logger, f"{e.message} ({e.count:,})") for e in now.errors[:SHOWN_ROWS]
    ]
    return [
        ("slow clients", ("connection", "worker", "user", "stream", "behind", "unsent"), slow),
        ("limits that were met", ("limit", "times", "last"), limits),
        ("warnings and errors", ("at", "worker", "logger", "message"), errors),
    ]


def _table(title: str, columns: tuple[str, ...], rows: Rows) -> Table:
    """Return a table. Its cells may hold what clients have sent, so control characters are escaped."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(escape_controls(cell)) for cell in row))
    return table
