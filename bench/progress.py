"""How far a long measurement is, as a bar on stderr; a line a part where stderr is no terminal."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

STEP_SECONDS = 0.2


class Progress:
    """Bars, one a part."""

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
        """A bar; what it gives is told how much of ``total`` is done."""
        task = self._bars.add_task(name, total=round(total))
        yield lambda done: self._bars.update(task, completed=round(done))
        if not self._console.is_terminal:
            self._console.print(f"{name} done")

    async def wait(self, name: str, seconds: float) -> None:
        """Let time pass."""
        start = time.monotonic()
        with self.part(name, seconds) as told:
            while (passed := time.monotonic() - start) < seconds:
                told(passed)
                await asyncio.sleep(min(STEP_SECONDS, seconds - passed))
            told(seconds)
