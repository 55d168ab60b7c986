"""The figures of all rounds, the rows of the table, and what is asked of each ratio."""

import json
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

from bench.clients import Figures
from bench.parts import ASKERS, Plan
from bench.replica import MOST
from bench.table import NOTHING, figure, markdown

NAMES = {
    "floor": "C floor", "floor batch": "C floor, joined", "queue": "aiohttp + queue", "bare": "bare aiohttp",
    "book": "the book's program", "ours": "of one author each",
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
        title: What the row shows, with its unit.
        yardstick: The column of the figure beside ours, or empty.
        asked: The ratio that is asked, such as ``>= 0.70``. Empty if nothing is.
        other: The part of the figure beside ours, if it has another name.
    """

    group: str
    part: str
    figure: str
    title: str
    yardstick: str = ""
    asked: str = ""
    other: str = ""


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

    def median(self, key: Key, figure: str) -> float | None:
        """Return the median of one figure over the rounds, or None if it was not measured."""
        values = self.values(key, figure)
        return median(values) if values else None

    def ratio(self, ours: Key, other: Key, figure: str) -> Ratio | None:
        """Compare two figures round by round. Return None if one of them was not measured."""
        pairs = zip(self.values(ours, figure), self.values(other, figure), strict=False)
        ratios = [mine / theirs for mine, theirs in pairs if theirs]
        return Ratio(median(ratios), min(ratios), max(ratios)) if ratios else None

    def raw(self) -> dict[str, list[Figures]]:
        """Return all figures by ``<column>: <part>``."""
        return {f"{key.column}: {key.part}": figures for key, figures in self._all.items()}

    def client_notes(self) -> str:
        """Say how near the clients were to their limit, at the worst in each part."""
        worst: dict[str, list[float]] = {}
        for key, rounds in self._all.items():
            for one in rounds:
                shares = [one.get(name, 0.0) for name in ("client_cpu_share", "core_busy_share")]
                worst[key.part] = [max(pair) for pair in zip(worst.get(key.part, (0.0, 0.0)), shares, strict=True)]
        text = ", ".join(f"{part} {100 * own:.0f} ({100 * busy:.0f})" for part, (own, busy) in worst.items() if own)
        return f"clients' CPU, and in brackets how busy their core was, % of a core: {text}"


def rows(plan: Plan) -> Iterator[Row]:
    """Return the rows to show."""
    titles = {
        "firehose": (f"firehose, {plan.conns} clients, {plan.rate:g} posts/s", ">= 0.70", "<= 2"),
        "tracks": (f"{plan.conns} different tracks, 10 % of {plan.track_rate:g} posts/s", ">= 0.60", "<= 1.2"),
    }
    for part, (title, efficient, prompt) in titles.items():
        for column, asked in (("floor", {"per_cpu_s": efficient, "p50_ms": prompt}), ("queue", {})):
            yield from (
                Row(part, part, name, f"{title}: {what}", column, asked.get(name, "")) for name, what in FAN_OUT.items()
            )
    for name, what in ROOMS.items():
        goal = ">= 0.90" if name == "per_cpu_s" else ""
        title = f"{plan.crowd} streams of one `meta.room` each: {what}"
        yield Row("rooms", "rooms", name, title, "ours", goal, "follows")
    for name, what in FAN_OUT.items():
        goal = ">= 0.90" if name == "per_cpu_s" else ""
        yield Row("joined", "joined", name, f"bursts of 10 posts, {plan.conns} clients: {what}", "floor batch", goal)
    calls = {"post": ("posts", "book", ">= 6"), "home": ("home pages", "book", ">= 2.5"), "me": ("users/me", "", "")}
    for part, (title, column, goal) in calls.items():
        yield Row("requests", part, "per_s", f"{title}, {ASKERS} at once: /s", column, goal)
        yield Row("requests", part, "cpu_us", f"{title}: server, µs", column)
        yield Row("requests", part, "redis_us", f"{title}: Redis, µs", column)
        yield Row("requests", part, "p99_ms", f"{title}: p99, ms", column)
    for count in range(MOST + 1):
        for name, of in (("cpu_us", "server"), ("primary_us", "primary"), ("replica_us", "busiest replica")):
            if count or name != "replica_us":
                yield Row("pages", f"{count} replicas", name, f"home pages, {count} replicas: {of}, µs")
    openings = {
        "different": ("filters, users, tokens differ", ">= 1.0"), "different again": ("the same once more", ">= 1.0"),
        "one token": ("one token, firehose", ">= 1.5"),
    }  # fmt: skip
    for part, (title, goal) in openings.items():
        yield Row("connects", part, "per_s", f"{plan.openings} connects, {title}: /s", "bare", goal, "bare")
        yield Row("connects", part, "cpu_us", f"{plan.openings} connects, {title}: CPU, µs", "bare", "", "bare")
    yield Row("idle", "idle", "kib_per_idle_conn", f"memory of one of {plan.idle_conns} connections, KiB", "queue")
    for name, what, goal in CROWD:
        yield Row("crowd", "crowd", name, f"{plan.crowd} streams back at once, {what}", "bare", goal)


FAN_OUT = {
    "per_cpu_s": "deliveries/CPU-s", "cpu_percent": "CPU, %", "p50_ms": "p50, ms", "p99_ms": "p99, ms",
    "joined": "events a read", "share": "delivered of what was due",
}  # fmt: skip
"""The figures of fan-out and their titles."""

ROOMS = {
    "per_cpu_s": "deliveries/CPU-s", "p50_ms": "p50, ms", "share": "delivered of what was due",
    "cpu_us": "CPU of a connect, µs",
}  # fmt: skip
"""The figures of streams of one field, beside streams of one author each, and their titles."""

CROWD = (
    ("storm_s", "until all are live, s", "<= 1.8"), ("storm_cpu_s", "CPU until then, s", ""),
    ("restart_s", "to a fresh server, until all are live, s", "<= 1.8"), ("restart_cpu_s", "CPU until then, s", ""),
    ("broken", "promises broken", ""),
)  # fmt: skip
"""The figures of the crowd: name, title, and the ratio that is asked."""


class Report:
    """The rows of one run, for the terminal and as JSON."""

    def __init__(self, results: Results, plan: Plan, base: str = "") -> None:
        """``base`` is the column of another commit that is measured in place of the yardsticks."""
        self._results = results
        self._plan = plan
        self._base = base

    def lines(self) -> list[dict[str, Any]]:
        """Return the measured rows for JSON. Beside another commit, each figure has one row, and nothing is asked."""
        made = {}
        for row in rows(self._plan):
            ours = Key("ours", row.part)
            other = Key(self._base, row.part) if self._base else Key(row.yardstick, row.other or row.part)
            mine = self._results.median(ours, row.figure)
            if mine is None:
                continue
            ratio, asked = self._results.ratio(ours, other, row.figure), "" if self._base else row.asked
            made[row.part, row.figure, other] = {
                "figure": row.title, "ours": mine, "yardstick": other.column,
                "yardstick_value": self._results.median(other, row.figure),
                "ratio": ratio and ratio.middle, "least": ratio and ratio.least, "greatest": ratio and ratio.greatest,
                "asked": asked, "reached": ratio.meets(asked) if ratio else None,
            }  # fmt: skip
        return list(made.values())

    def json(self) -> str:
        """Return the rows, and all figures of all rounds, as text."""
        return json.dumps({"rows": self.lines(), "rounds": self._results.raw()}, indent=2) + "\n"

    def text(self) -> str:
        """Return the table, and a note on the clients."""
        head = ("figure", "ours", self._base or "beside it", "ratio (least to greatest)", "asked", "reached")
        table = markdown(head, [_cells(line) for line in self.lines()], padded=True)
        return f"medians of {self._plan.rounds} interleaved rounds\n\n{table}\n{self._results.client_notes()}"


def _cells(line: dict[str, Any]) -> list[str]:
    beside = line["yardstick_value"]
    other = NOTHING if beside is None else f"{figure(beside)} {NAMES.get(line['yardstick'], '')}".strip()
    ratio = NOTHING
    if line["ratio"] is not None:
        ratio = f"{line['ratio']:.2f} ({line['least']:.2f} to {line['greatest']:.2f})"
    reached = {None: "", True: "yes", False: "no"}[line["reached"]]
    return [line["figure"], figure(line["ours"]), other, ratio, line["asked"], reached]
