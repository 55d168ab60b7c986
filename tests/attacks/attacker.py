"""The attacker as a process of its own, with the lowest priority.

An attacker on the internet takes CPU time from the server and from honest clients only by what it sends.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

from tests.attacks import costly, floods, inputs
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
    "all costly inputs at once": inputs.send_all,
}


def attack_from_outside(name: str, address: str) -> object:
    """Run an attack in this process on the server at an address. Return what the attack achieved."""

    async def run() -> object:
        server: Any = SimpleNamespace(address=address)
        async with Api(server) as api:
            return await ATTACKS[name](api)

    return asyncio.run(run())


def attackers() -> Executor:
    """Return a process that runs attacks when the server and the honest client leave CPU time."""
    spawning = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=spawning, initializer=partial(os.nice, 19))
    pool.submit(os.getpid).result()
    return pool
