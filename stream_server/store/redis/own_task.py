"""Makes sure that code runs in a task. A request may begin without one, see `stream_server.web.http.early_start`."""

import asyncio
from collections.abc import Generator
from types import coroutine


@coroutine
def enter_task() -> Generator[None, None, None]:
    """Return in a task. Await this before `asyncio.timeout`, which raises RuntimeError outside of a task."""
    if asyncio.current_task() is None:
        yield
