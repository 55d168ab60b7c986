"""Print what each attack did to a server without its defences and to one with them."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.attacks import costly
from tests.attacks.arena import Seen, arena
from tests.end_to_end.api import Api

ATTACKS: dict[str, Callable[[Api], Awaitable[object]]] = {
    "explain long rules": costly.explain,
    "streams with slow saved rules": costly.saved_rules,
    "streams with a hundred long rules": costly.long_parameters,
}


async def measure(attack: Callable[[Api], Awaitable[object]], *, defended: bool) -> Seen:
    """Run one attack on a server of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with arena(Path(folder), defended=defended) as site:
            return await site.suffer(attack)


def main() -> None:
    """Run all attacks and print the table, in milliseconds."""
    table = Table("attack", "defence", "loop blocked", "honest p99 before", "during", title="milliseconds")
    for name, attack in track(list(ATTACKS.items()), description="attacks", console=Console(stderr=True)):
        for defended in (False, True):
            seen = asyncio.run(measure(attack, defended=defended))
            times = (seen.blocked, seen.p99_before, seen.p99_during)
            table.add_row(name, "on" if defended else "off", *(f"{seconds * 1000:.0f}" for seconds in times))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
