"""Waiting for a condition with a deadline, in place of a sleep of a guessed length."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar, overload

from tests.preloaded.launcher import AnyProcess

T = TypeVar("T")

HURRY = "TESTS_PATIENCE"
"""Names other seconds than PATIENCE, for tests of a faulty server, which wait in vain."""

PATIENCE = float(os.environ.get(HURRY, "60"))
"""The longest wait, in seconds, for what an idle machine does at once or after times that the test has set itself.

It is also the time that tests give Redis to answer. A busy machine is neither a fault nor an outage: only what stands
still takes so long.
"""


def _pace(begun_at: float) -> float:
    """Return the time between two checks, in seconds, of a wait that began at ``begun_at``.

    After a second it is 50 ms: on a busy machine many tests wait, and their checks would take the time of what they
    wait for.
    """
    return 0.01 if time.monotonic() < begun_at + 1 else 0.05


@overload
async def eventually(check: Callable[[], Awaitable[T]], *, seconds: float = PATIENCE, what: str = "") -> T: ...


@overload
async def eventually(check: Callable[[], T], *, seconds: float = PATIENCE, what: str = "") -> T: ...


async def eventually(check: Callable[[], object], *, seconds: float = PATIENCE, what: str = "") -> object:
    """Return the first true answer of ``check`` (a function, plain or async).

    It is called every 10 ms, and after a second every 50 ms. Raises AssertionError with ``what`` if there is none
    within ``seconds``.
    """
    begun_at = time.monotonic()
    end = begun_at + seconds
    while True:
        answer = check()
        if isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what or check}")
        await asyncio.sleep(_pace(begun_at))  # the condition is checked above; this only paces it


def wait_for_process(
    process: AnyProcess, check: Callable[[], object], *, seconds: float, log: Callable[[], str]
) -> None:
    """Call ``check``, paced as by `eventually`, until it is true.

    Raises TimeoutError with the log if the process ends before that.
    """
    begun_at = time.monotonic()
    end = begun_at + seconds
    while not check():
        if time.monotonic() > end or process.poll() is not None:
            raise TimeoutError(f"exit code {process.poll()}, not ready within {seconds:g} s: {log()[-3000:]}")
        time.sleep(_pace(begun_at))  # the condition is checked above; this only paces it
