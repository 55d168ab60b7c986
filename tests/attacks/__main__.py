"""Print what each attack achieved, and what an honest client noticed, without the defences and with them."""

import asyncio
import tempfile
from concurrent.futures import Executor
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.attacks.arena import QUIET_ROUNDS, Seen, arena
from tests.attacks.attacker import ATTACKS, attack_from_outside, attackers
from tests.end_to_end.api import Api


async def measure(name: str, attacker: Executor, *, defended: bool) -> tuple[object, Seen]:
    """Run one attack on a server of its own. Return what it achieved, and what was seen."""
    achieved: list[object] = []

    async def attack_and_note(api: Api) -> None:
        loop = asyncio.get_running_loop()
        address = api.server.address
        achieved.append(await loop.run_in_executor(attacker, attack_from_outside, name, address))

    flags = () if defended else ("--consent", "off")
    with tempfile.TemporaryDirectory() as folder:
        async with arena(Path(folder), *flags, defended=defended) as site:
            seen = await site.suffer(attack_and_note, QUIET_ROUNDS)
            return achieved[0], seen


def main() -> None:
    """Run all attacks and print the table. Times are in milliseconds."""
    table = Table(
        "attack", "defence", "achieved", "rounds", "loop blocked", "honest p99 before", "during", title="milliseconds"
    )
    with attackers() as attacker:
        for name in track(list(ATTACKS), description="attacks", console=Console(stderr=True)):
            for defended in (False, True):
                achieved, seen = asyncio.run(measure(name, attacker, defended=defended))
                shown = str(achieved) if isinstance(achieved, int) else ""
                times = (f"{seconds * 1000:.0f}" for seconds in (seen.blocked, seen.p99_before, seen.p99_during))
                table.add_row(name, "on" if defended else "off", shown, str(seen.rounds), *times)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
