"""The figures of all rounds, the rows of the table, and what is asked of each ratio."""

import json
from collections import defaultdict
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.clients import Figures
from bench.parts import CROWD_RATE, Plan

NAMES = {
    "floor": "C floor", "floor batch": "C floor, joined", "queue": "aiohttp + queue", "bare": "bare aiohttp",
    "sse": "SSE",
}  # fmt: skip
"""Titles of the columns of yardsticks."""


class Key(NamedTuple):
    """The place of a figure: the column of a server, and the part of the run."""

    column: str
    part: str


class Row(NamedTuple):
    """One row of the table.

    Attributes:
        group: Part of the run, by its name on the command line.
        part: Where our figure is.
        figure: Name of the figure in both.
        title: What the row shows.
        unit: Unit of the figure.
        yardstick: Where the figure beside ours is, or None.
        asked: The ratio that is asked, such as ``>= 0.70``. Empty if nothing is.
    """

    group: str
    part: str
    figure: str
    title: str
    unit: str
    yardstick: Key | None = None
    asked: str = ""


class Ratio(NamedTuple):
    """Our figure divided by the other: the median of the rounds, the least and the greatest."""

    middle: float
    least: float
    greatest: float

    def meets(self, asked: str) -> bool | None:
        """Whether the median is what is asked. None if nothing is."""
        if not asked:
            return None
        sign, bound = asked.split()
        return self.middle >= float(bound) if sign == ">=" else self.middle <= float(bound)


class Results:
    """All figures of a run, in the order of the rounds."""

    def __init__(self) -> None:
        self._all: dict[Key, list[Figures]] = defaultdict(list)

    def add(self, column: str, part: str, figures: Figures) -> None:
        """Add the figures of one round."""
        self._all[Key(column, part)].append(figures)

    def values(self, key: Key, figure: str) -> list[float]:
        """Return one figure of each round. Empty if it was not measured."""
        return [figures[figure] for figures in self._all.get(key, ()) if figure in figures]

    def ratio(self, ours: Key, other: Key, figure: str) -> Ratio | None:
        """Compare two figures round by round. Return None if one of them was not measured."""
        pairs = zip(self.values(ours, figure), self.values(other, figure), strict=False)
        ratios = [mine / theirs for mine, theirs in pairs if theirs]
        return Ratio(median(ratios), min(ratios), max(ratios)) if ratios else None

    def greatest(self, part: str, figure: str) -> float:
        """Return the greatest value that any server had in a part."""
        keys = [key for key in self._all if key.part == part]
        return max((value for key in keys for value in self.values(key, figure)), default=0.0)

    def raw(self) -> dict[str, list[Figures]]:
        """Return all figures by ``<column>: <part>``."""
        return {f"{key.column}: {key.part}": figures for key, figures in self._all.items()}


def rows(plan: Plan) -> list[Row]:
    """Return the rows to show."""
    return [
        *_fan_out_rows(plan), *_joined_rows(plan), *_request_rows(), *_connect_rows(plan), *_idle_rows(plan),
        *_websocket_rows(plan), *_crowd_rows(plan),
    ]  # fmt: skip


def _fan_out_rows(plan: Plan) -> list[Row]:
    titles = {
        "firehose": (f"firehose, {plan.conns} clients, {plan.rate:g} posts/s", ">= 0.70", "<= 2"),
        "tracks": (f"10 % tracks, {plan.conns} clients, {plan.track_rate:g} posts/s", ">= 0.45", "<= 1.2"),
    }
    made = []
    for part, (title, efficient, prompt) in titles.items():
        for column, asked in (("floor", {"per_cpu_s": efficient, "p50_ms": prompt}), ("queue", {})):
            made += [
                Row(part, part, figure, f"{title}: {what}", unit, Key(column, part), asked.get(figure, ""))
                for figure, what, unit in FAN_OUT
            ]
        made.append(Row(part, part, "share", f"{title}: delivered of what was due", "", Key("floor", part)))
        made.append(Row(part, part, "bytes_each", f"{title}: size of a delivery", "bytes", Key("floor", part)))
    return made


FAN_OUT = (
    ("per_cpu_s", "deliveries", "/CPU-s"),
    ("cpu_percent", "CPU", "% of a core"),
    ("p50_ms", "post to client, p50", "ms"),
    ("p99_ms", "post to client, p99", "ms"),
    ("joined", "events a read", ""),
)


def _joined_rows(plan: Plan) -> list[Row]:
    titles = {"joined": ("bursts of 10 posts", ">= 0.90"), "flood": ("bursts of 250 posts", "")}
    return [
        Row(
            "joined", part, figure, f"{title}, {plan.conns} clients: {what}", unit, Key("floor batch", part),
            asked if figure == "per_cpu_s" else "",
        )
        for part, (title, asked) in titles.items() for figure, what, unit in (*FAN_OUT, ("share", "delivered", ""))
    ]  # fmt: skip


def _request_rows() -> list[Row]:
    calls = (
        ("me", "GET /v1/users/me", ">= 0.60"),
        ("home", "GET /v1/timelines/home, 30 posts", ">= 0.30"),
        ("post", "POST /v1/statuses", ">= 0.25"),
    )
    echo = Key("bare", "echo")
    return [
        row
        for part, title, asked in calls
        for row in (
            Row("requests", part, "per_s", f"{title}: 32 at once", "/s", echo, asked),
            Row("requests", part, "cpu_us", f"{title}: CPU of the server", "µs", echo),
            Row("requests", part, "p99_ms", f"{title}: p99", "ms", echo),
        )
    ]


def _connect_rows(plan: Plan) -> list[Row]:
    calls = (
        ("different", "filters, users, tokens differ", ">= 0.50"),
        ("different again", "the same once more", ">= 0.50"),
        ("one token", "one token, firehose", ">= 0.75"),
    )
    bare = Key("bare", "bare")
    return [
        row
        for part, title, asked in calls
        for row in (
            Row("connects", part, "per_s", f"{plan.openings} connects, {title}", "/s", bare, asked),
            Row("connects", part, "cpu_us", f"{plan.openings} connects, {title}: CPU", "µs", bare),
        )
    ]


def _idle_rows(plan: Plan) -> list[Row]:
    title = f"{plan.idle_conns} idle connections: memory of one"
    return [Row("idle", "idle", "kib_per_idle_conn", title, "KiB", Key("queue", "idle"))]


def _websocket_rows(plan: Plan) -> list[Row]:
    titles = {
        "firehose": f"firehose, {plan.conns} WebSockets, {plan.rate:g} posts/s",
        "tracks": f"10 % tracks, {plan.conns} WebSockets, {plan.track_rate:g} posts/s",
    }
    idle = f"{plan.idle_conns} idle WebSockets: memory of one"
    made = [
        Row("websocket", f"websocket {kind}", figure, f"{title}: {what}", unit, Key("sse", f"websocket {kind}"), asked)
        for kind, title in titles.items()
        for figure, what, unit, asked in (
            ("per_cpu_s", "deliveries", "/CPU-s", ">= 0.90"),
            ("p50_ms", "post to client, p50", "ms", ""),
            ("p99_ms", "post to client, p99", "ms", ""),
            ("share", "delivered of what was due", "", ""),
            ("bytes_each", "size of a delivery", "bytes", ""),
        )
    ]
    kib = Row("websocket", "websocket idle", "kib_per_idle_conn", idle, "KiB", Key("sse", "websocket idle"), "<= 1.20")
    return [*made, kib]


def _crowd_rows(plan: Plan) -> list[Row]:
    back = f"{plan.crowd} streams back at once"
    titles = (
        ("storm_s", f"{back}: until all are live", "s", "<= 2.5"),
        ("storm_cpu_s", f"{back}: CPU until then", "s", ""),
        ("restart_s", f"{back} to a fresh server: until all are live", "s", "<= 2.5"),
        ("restart_cpu_s", f"{back} to a fresh server: CPU until then", "s", ""),
    )
    return [
        *(Row("crowd", "crowd", name, title, unit, Key("bare", "crowd"), asked) for name, title, unit, asked in titles),
        Row("crowd", "crowd", "refused", f"{back}: connects refused", ""),
        Row("crowd", "crowd", "ramp_per_s", f"{plan.crowd} streams connect, 128 at a time", "/s"),
        Row("crowd", "crowd", "p50_ms", f"{plan.crowd} streams, {CROWD_RATE:g} posts/s: post to client, p50", "ms"),
        Row("crowd", "crowd", "p99_ms", f"{plan.crowd} streams, {CROWD_RATE:g} posts/s: post to client, p99", "ms"),
        Row("crowd", "crowd", "cpu_percent", f"{plan.crowd} streams, {CROWD_RATE:g} posts/s: CPU", "% of a core"),
        Row("crowd", "crowd", "kib_per_idle_conn", f"{plan.crowd} streams: memory of one", "KiB"),
        Row("crowd", "crowd", "left_mib", f"memory more than before, when {plan.crowd} streams have left", "MiB"),
        Row("crowd", "crowd", "broken", f"{plan.crowd} streams: promises broken", ""),
    ]  # fmt: skip


class Report:
    """The table of one run.

    ``ours`` is the column of our server. ``base``, if given, is the column of another commit, which is then the only
    yardstick.
    """

    def __init__(self, results: Results, plan: Plan, ours: str, base: str = "") -> None:
        self._results = results
        self._plan = plan
        self._ours = ours
        self._base = base

    def lines(self) -> list[dict[str, Any]]:
        """Return the measured rows as a table for JSON."""
        made, seen = [], set()
        for row in rows(self._plan):
            ours = Key(self._ours, row.part)
            if not self._results.values(ours, row.figure):
                continue
            other = Key(self._base, row.part) if self._base else row.yardstick
            if (row.part, row.figure, other) not in seen:
                seen.add((row.part, row.figure, other))
                made.append(self._line(row, ours, other))
        return made

    def _line(self, row: Row, ours: Key, other: Key | None) -> dict[str, Any]:
        asked = "" if self._base else row.asked
        theirs = self._results.values(other, row.figure) if other else []
        ratio = self._results.ratio(ours, other, row.figure) if other else None
        return {
            "part": row.group, "figure": row.title, "unit": row.unit,
            "ours": median(self._results.values(ours, row.figure)),
            "yardstick": other.column if other else "", "yardstick_value": median(theirs) if theirs else None,
            "ratio": ratio and ratio.middle, "least": ratio and ratio.least, "greatest": ratio and ratio.greatest,
            "asked": asked, "reached": ratio.meets(asked) if ratio else None,
        }  # fmt: skip

    def json(self) -> str:
        """Return the rows, and all figures of all rounds, as text."""
        return json.dumps({"rows": self.lines(), "rounds": self._results.raw()}, indent=2) + "\n"

    def show(self, notes: list[str]) -> None:
        """Print the table and the notes."""
        title = f"medians of {self._plan.rounds} interleaved rounds [least..greatest]"
        table = Table(title=title, title_justify="left")
        for column in ("figure", self._ours, self._base or "yardstick", "ratio", *(() if self._base else (REACHED))):
            table.add_column(column, justify="left" if column == "figure" else "right")
        last = ""
        for line in self.lines():
            if last and line["part"] != last:
                table.add_section()
            last = line["part"]
            table.add_row(*_cells(line, against=bool(self._base)), style="bold red" if line["reached"] is False else "")
        console = Console(width=None if Console().is_terminal else 160)
        console.print(table)
        for note in [*notes, *self._limits()]:
            console.print(note, highlight=False)

    def _limits(self) -> list[str]:
        """Say how near the clients were to their limit in each part."""
        parts = dict.fromkeys(row.part for row in rows(self._plan))
        found = {part: self._results.greatest(part, "client_cpu_share") for part in (*parts, "echo", "bare")}
        busy = {part: self._results.greatest(part, "core_busy_share") for part in found}
        text = ", ".join(f"{part} {100 * share:.0f} ({100 * busy[part]:.0f})" for part, share in found.items() if share)
        return [f"clients' CPU, and in brackets how busy their core was, % of a core: {text}"] if text else []


REACHED = ("asked", "reached")
"""The columns that only a comparison with yardsticks has."""

NOTHING = "\N{EN DASH}"
"""The cell of a figure that was not measured."""


def _cells(line: dict[str, Any], *, against: bool) -> list[str]:
    unit = f" {line['unit']}" if line["unit"] else ""
    name = "" if against else f" {NAMES.get(line['yardstick'], line['yardstick'])}"
    other = NOTHING if line["yardstick_value"] is None else f"{_text(line['yardstick_value'])}{name}"
    ratio = NOTHING
    if line["ratio"] is not None:
        ratio = f"{line['ratio']:.2f}"
        if line["least"] != line["greatest"]:
            ratio += f" [{line['least']:.2f}..{line['greatest']:.2f}]"
    cells = [f"{line['figure']}", f"{_text(line['ours'])}{unit}", other, ratio]
    reached = {None: "", True: "yes", False: "no"}[line["reached"]]
    return cells if against else [*cells, line["asked"].replace(">=", "≥").replace("<=", "≤"), reached]


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
