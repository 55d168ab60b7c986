"""A table as Markdown."""

from collections.abc import Iterable, Sequence

NOTHING = "\N{EN DASH}"
"""The cell of a figure that was not measured."""


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *, padded: bool = False) -> str:
    """Return a table. With ``padded`` its columns are aligned, for a terminal."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) if padded else 0 for column in range(len(head))]
    cells = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def figure(value: float | None) -> str:
    """Return a figure with about three digits."""
    if value is None:
        return NOTHING
    decimals = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{decimals}f}"
