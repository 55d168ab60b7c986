"""Waiting for a condition with a deadline, in place of sleeping and hoping."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar, overload

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds that tests give Redis to answer: a busy machine is not an outage, and what tells one names its own time."""


@overload
async def eventually(check: Callable[[], Awaitable[T]], *, seconds: float = 10.0, what: str = "") -> T: ...


@overload
async def eventually(check: Callable[[], T], *, seconds: float = 10.0, what: str = "") -> T: ...


async def eventually(check: Callable[[], object], *, seconds: float = 10.0, what: str = "") -> object:
    """The first true answer of ``check`` (a function, plain or async), asked every 10 ms.

    Raises AssertionError, naming ``what``, when there was none within ``seconds``.
    """
    end = time.monotonic() + seconds
    while True:
        answer = check()
        if isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what or check}")
        await asyncio.sleep(0.01)
