"""The progress of a long measurement: bars on stderr, or one line for each part if stderr is not a terminal."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

STEP_SECONDS = 0.2
"""Seconds between two updates of a bar."""


class Progress:
    """Progress bars, one for each part."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        columns = (TextColumn("{task.description:>20}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
        self._bars = Bars(*columns, console=self._console, disable=not self._console.is_terminal)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @contextmanager
    def part(self, name: str, total: float) -> Iterator[Callable[[float], None]]:
        """Show a bar. Yields a function that takes how much of ``total`` is done."""
        task = self._bars.add_task(name, total=round(total))
        yield lambda done: self._bars.update(task, completed=round(done))
        if not self._console.is_terminal:
            self._console.print(f"{name} done")

    async def wait(self, name: str, seconds: float) -> None:
        """Wait for ``seconds`` and show the progress."""
        start = time.monotonic()
        with self.part(name, seconds) as told:
            while (passed := time.monotonic() - start) < seconds:
                told(passed)
                await asyncio.sleep(min(STEP_SECONDS, seconds - passed))
            told(seconds)
