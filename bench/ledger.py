"""Collects the results of a run, and shows them as a table: figures, and promises that must be zero."""

from typing import NamedTuple

from bench.table import figure, markdown


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
        """Return one figure. Raises StopIteration if it was not noted."""
        return next(row.value for row in self.rows if (row.part, row.name) == (part, name))

    @property
    def broken(self) -> list[Row]:
        """The promises that were broken."""
        return [row for row in self.rows if row.promise and row.value]

    def text(self, title: str) -> str:
        """Return the table. Broken promises are marked."""
        broken = self.broken
        cells = [
            (row.part, row.name, f"{figure(row.value)} {row.unit}".strip(), "BROKEN" if row in broken else "")
            for row in self.rows
        ]
        table = markdown(("part", "figure", title, ""), cells, padded=True)
        return f"{table}\n{f'{len(broken)} promises were broken' if broken else 'every promise was kept'}"
