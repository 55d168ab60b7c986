"""Medians over the rounds, and the table."""

from collections import defaultdict
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.rounds import Figures, Plan

Rows = tuple[tuple[str, str, str, str], ...]
"""Rows of the table: part, name of the figure, title, unit."""


class Results:
    """Figures by server and by part of the round."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str, str], list[float]] = defaultdict(list)

    def add(self, server: str, part: str, figures: Figures) -> None:
        """Add the figures of one round."""
        for name, value in figures.items():
            self._all[server, part, name].append(value)

    def median(self, server: str, part: str, name: str) -> float | None:
        """Return the median over the rounds, or None if the figure was not measured."""
        values = self._all.get((server, part, name))
        return median(values) if values else None

    def spread(self, server: str, part: str, name: str) -> str:
        """Return the median with minimum and maximum as text."""
        values = self._all.get((server, part, name))
        if not values:
            return "-"
        middle = _text(median(values))
        return middle if len(values) == 1 else f"{middle}  [{_text(min(values))}..{_text(max(values))}]"


def rows(plan: Plan) -> Rows:
    """Return the rows to show: part, name of the figure, title, unit."""
    fan_out = (
        ("deliveries_per_s", "deliveries", "/s"),
        ("deliveries_per_server_cpu_s", "deliveries", "/server-CPU-s"),
        ("share_delivered", "delivered of what was due", ""),
        ("p50_ms", "post to client, p50", "ms"),
        ("p99_ms", "post to client, p99", "ms"),
    )
    titles = {
        "firehose": f"firehose, {plan.conns} clients, {plan.rate:g} posts/s",
        "track": f"10 % tracks, {plan.conns} clients, {plan.track_rate:g} posts/s",
    }
    return (
        *((part, name, f"{title}: {what}", unit) for part, title in titles.items() for name, what, unit in fan_out),
        ("idle", "kib_per_idle_conn", f"{plan.idle_conns} idle connections: memory of one", "KiB"),
        ("idle", "open_per_s", f"{plan.idle_conns} idle connections: opened", "/s"),
        ("posts", "posts_per_s", "posts over HTTP", "/s"),
    )


def show(results: Results, servers: list[str], plan: Plan) -> None:
    """Print the table, and the ratio of the first server to the second."""
    table = Table(title=f"medians of {plan.rounds} interleaved rounds [least..greatest]", title_justify="left")
    table.add_column("figure")
    for server in servers:
        table.add_column(server, justify="right")
    for part, name, what, unit in rows(plan):
        table.add_row(f"{what} {unit}", *(results.spread(server, part, name) for server in servers))
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table)
    for part in ("firehose", "track"):
        ours, other = (results.median(server, part, "deliveries_per_server_cpu_s") for server in servers[:2])
        if ours and other:
            console.print(f"{part}: {ours / other:.2f} times the deliveries per CPU-second of {servers[1]}")


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
