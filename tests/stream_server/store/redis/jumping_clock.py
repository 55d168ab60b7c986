"""A clock that jumps over waiting, and a slow Redis on that clock. The load of the machine changes neither."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from stream_server.store.redis import client, lanes, pipelined_connection, scripts


class JumpingClock:
    """The clock of the event loop and of the store: it stands still during work, and jumps over waiting.

    All waiting must be for this process: the clock would jump over the answer of another one.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop: Any = asyncio.get_running_loop()
        self._now = 0.0
        self._select = loop._selector.select
        monkeypatch.setattr(loop, "time", self.now)
        monkeypatch.setattr(loop._selector, "select", self._jump)
        for module in (client, lanes, pipelined_connection, scripts):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=self.now))

    def now(self) -> float:
        return self._now

    def _jump(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            return list(self._select(None))
        ready = list(self._select(0))
        if not ready:
            self._now += max(0.0, timeout)
        return ready
