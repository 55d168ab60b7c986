"""The table: one column a peer, one row a figure. A figure that was not measured is an en dash."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.peers.figures import Results
from bench.peers.works import Part, Plan

NOTHING = "\N{EN DASH}"
"""The cell of a figure that was not measured."""

WIDTH = 180
"""Width of the table in characters if the output is no terminal."""


@dataclass(frozen=True)
class Column:
    """A peer as the table shows it. ``missing`` says why it was not measured."""

    name: str
    version: str = NOTHING
    clients: str = NOTHING
    settings: str = ""
    missing: str = ""
    chooses: dict[Part, str] = field(default_factory=dict)


class Row(NamedTuple):
    """One row: its title and a cell for each column."""

    title: str
    cells: list[str]


def rows(results: Results, columns: Sequence[Column], plan: Plan) -> list[Row]:
    """Return all rows."""
    found = [
        Row("version", [column.version for column in columns]),
        Row("clients", [column.clients for column in columns]),
    ]
    titles: dict[Part, str] = {
        "firehose": f"firehose, {plan.conns:,} clients \N{MULTIPLICATION SIGN} {plan.rate:g} events/s",
        "topic": f"one topic of ten, {plan.conns:,} clients \N{MULTIPLICATION SIGN} {plan.topic_rate:g} events/s",
        "own": "the same, each client with a filter of words of its own",
    }
    for part, title in titles.items():
        if part != "firehose":
            found.append(Row(f"{title}: chosen by", [column.chooses.get(part, NOTHING) for column in columns]))
        prefix = f"{title}: " if part == "firehose" else "… "
        found += _fan_out(results, columns, part, prefix)
    idle = f"{plan.idle_conns:,} idle connections: "
    found.append(_row(f"{idle}memory of one, KiB", results, columns, "idle", "kib_per_idle_conn"))
    found.append(_row("… opened per second", results, columns, "idle", "open_per_s"))
    found.append(_row("… opened per server-CPU-second", results, columns, "idle", "open_per_cpu_s"))
    return found


def _fan_out(results: Results, columns: Sequence[Column], part: Part, prefix: str) -> list[Row]:
    figures = [
        (f"{prefix}deliveries per server-CPU-second", ["per_cpu_s"]),
        ("… CPU of the server, % of a core", ["cpu_percent"]),
        ("… time to a client, p50 / p99, ms", ["p50_ms", "p99_ms"]),
        ("… delivered of what was due", ["share_delivered"]),
        ("… busy share of the clients' core", ["core_busy_share"]),
    ]
    return [_row(title, results, columns, part, *names) for title, names in figures]


def _row(title: str, results: Results, columns: Sequence[Column], part: str, *names: str) -> Row:
    cells = []
    for column in columns:
        values = [results.median(column.name, part, name) for name in names]
        cells.append(" / ".join(_text(value) for value in values if value is not None) or NOTHING)
    return Row(title, cells)


def notes(columns: Sequence[Column]) -> list[str]:
    """Return a line for each peer: its settings, or why it was not measured."""
    return [
        f"{column.name}: {f'not measured: {column.missing}' if column.missing else column.settings}."
        for column in columns
    ]


def terminal(results: Results, columns: Sequence[Column], plan: Plan) -> None:
    """Print the table."""
    table = Table(title=_heading(plan), title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(column.name, justify="right")
    for row in rows(results, columns, plan):
        table.add_row(row.title, *row.cells)
    console = Console(width=None if Console().is_terminal else WIDTH)
    console.print(table)
    for note in notes(columns):
        console.print(note, markup=False)


def markdown(results: Results, columns: Sequence[Column], plan: Plan) -> str:
    """Return the table as Markdown."""
    lines = [
        f"| | {' | '.join(column.name for column in columns)} |",
        f"|---|{'---|' * len(columns)}",
        *(f"| {row.title} | {' | '.join(row.cells)} |" for row in rows(results, columns, plan)),
        "",
        f"{_heading(plan)[0].upper()}{_heading(plan)[1:]}.",
        "",
        *(f"- {note}" for note in notes(columns)),
    ]
    return "\n".join(lines)


def _heading(plan: Plan) -> str:
    return f"medians of {plan.rounds} interleaved rounds; each server on one core, everything else on another"


def _text(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 20 else f"{value:.1f}" if abs(value) >= 2 else f"{value:.2f}"
