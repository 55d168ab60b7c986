"""Print what each attack achieved, and what an honest client noticed, without the defences and with them."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.attacks import costly, floods
from tests.attacks.arena import QUIET_ROUNDS, Seen, arena
from tests.end_to_end.api import Api

ATTACKS: dict[str, Callable[[Api], Awaitable[object]]] = {
    "explain long rules": costly.explain,
    "streams with slow saved rules": costly.saved_rules,
    "streams with a hundred long rules": costly.long_parameters,
    "guess passwords for 1 s": floods.guess_passwords,
    "sign up for 1 s": floods.sign_up,
    "ask for names for 1 s": floods.ask_for_names,
    "write 1,000 large statuses": floods.fill_the_log,
    "open 100 streams": floods.open_streams,
    "100 polls at once": floods.poll,
    "30 previews at once": floods.preview,
    "write to a stranger": floods.write_to_a_stranger,
    "500 slow sockets": floods.slow_sockets,
}


async def measure(attack: Callable[[Api], Awaitable[object]], *, defended: bool) -> tuple[object, Seen]:
    """Run one attack on a server of its own. Return what it achieved, and what was seen."""
    achieved: list[object] = []

    async def attack_and_note(api: Api) -> None:
        achieved.append(await attack(api))

    flags = () if defended else ("--consent", "off")
    with tempfile.TemporaryDirectory() as folder:
        async with arena(Path(folder), *flags, defended=defended) as site:
            seen = await site.suffer(attack_and_note, QUIET_ROUNDS)
            return achieved[0], seen


def main() -> None:
    """Run all attacks and print the table. Times are in milliseconds."""
    table = Table("attack", "defence", "achieved", "loop blocked", "honest p99 before", "during", title="milliseconds")
    for name, attack in track(list(ATTACKS.items()), description="attacks", console=Console(stderr=True)):
        for defended in (False, True):
            achieved, seen = asyncio.run(measure(attack, defended=defended))
            shown = str(achieved) if isinstance(achieved, int) else ""
            times = (f"{seconds * 1000:.0f}" for seconds in (seen.blocked, seen.p99_before, seen.p99_during))
            table.add_row(name, "on" if defended else "off", shown, *times)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
