"""Show the results live in the terminal: python watch.py FILE [SECONDS]."""

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from results import read_summary
from rich.columns import Columns
from rich.console import Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

BARS = "▁▂▃▄▅▆▇█"

TITLES = {"tags": "Trending tags", "words": "Trending words", "active": "Most active", "mentioned": "Most mentioned"}
SIGNS = {"tags": "#", "words": "", "active": "@", "mentioned": "@"}


def view(path: Path) -> Group:
    """Return what the terminal shows of the results."""
    summary: dict[str, Any] = read_summary(path)
    counts = [posts for _, posts in summary["minutes"]]
    latest = f"{counts[-1]} posts in the latest minute" if counts else "no posts yet"
    totals = summary["totals"]
    text = f"{bars(counts)}\n{latest}, {totals['posts']} in all"
    text += f", {totals['missed']} lost" if totals["missed"] else ""
    tables = [table(title, SIGNS[name], summary[name]) for name, title in TITLES.items()]
    return Group(Panel(Text(text), title="Posts a minute, the last hour"), Columns(tables))


def bars(counts: list[int]) -> str:
    """Return one character for each count."""
    most = max(counts, default=0)
    return "".join(BARS[count * (len(BARS) - 1) // most] for count in counts) if most else ""


def table(title: str, sign: str, rows: list[tuple[str, int]]) -> Table:
    """Return a table of names with their numbers of posts."""
    made = Table("", "posts", title=title)
    for name, count in rows:
        made.add_row(Text(sign + name), str(count))  # Text: what people write is no markup
    return made


def main() -> None:
    """Show the results until Ctrl-C."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} FILE [SECONDS]")
    path, seconds = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    with suppress(KeyboardInterrupt), Live(view(path), auto_refresh=False) as live:
        while True:
            time.sleep(seconds)
            live.update(view(path), refresh=True)


if __name__ == "__main__":
    main()
