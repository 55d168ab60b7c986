"""Collects the results of a run, and shows them as a table and as JSON: figures, and promises that must be zero."""

import json
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Row(NamedTuple):
    """One figure of one part of the run. A ``promise`` is broken by any value but zero."""

    part: str
    name: str
    value: float
    unit: str
    promise: bool


class Ledger:
    """The figures of a run, in the order in which they were added."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def note(self, part: str, name: str, value: float, unit: str) -> None:
        """Add a figure."""
        self.rows.append(Row(part, name, value, unit, promise=False))

    def promise(self, part: str, name: str, value: float) -> None:
        """Add a figure that must be zero."""
        self.rows.append(Row(part, name, value, "", promise=True))

    def value(self, part: str, name: str) -> float:
        """Return one figure. Raises KeyError if it was not noted."""
        for row in self.rows:
            if (row.part, row.name) == (part, name):
                return row.value
        raise KeyError(name)

    @property
    def broken(self) -> list[Row]:
        """The promises that were broken."""
        return [row for row in self.rows if row.promise and row.value]

    def json(self) -> str:
        """Return ``{part: {name: value}}`` as text. The unit follows the name in brackets."""
        parts: dict[str, dict[str, float]] = {}
        for row in self.rows:
            parts.setdefault(row.part, {})[f"{row.name} [{row.unit}]" if row.unit else row.name] = row.value
        return json.dumps(parts, indent=2) + "\n"

    def show(self, title: str) -> None:
        """Print the table. Broken promises stand out."""
        table = Table(title=title, title_justify="left")
        for column in ("part", "figure"):
            table.add_column(column)
        table.add_column("", justify="right")
        last = ""
        for row in self.rows:
            if last and row.part != last:
                table.add_section()
            style = "bold red" if row in self.broken else None
            table.add_row(row.part if row.part != last else "", row.name, _text(row), style=style)
            last = row.part
        console = Console(width=None if Console().is_terminal else 120)
        console.print(table)
        broken = len(self.broken)
        console.print(f"{broken} promises were broken" if broken else "every promise was kept")


def _text(row: Row) -> str:
    value = f"{row.value:,.0f}" if abs(row.value) >= 100 or row.value == int(row.value) else f"{row.value:.2f}"
    return f"{value} {row.unit}".strip()
