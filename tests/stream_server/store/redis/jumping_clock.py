"""A clock that jumps over waiting, and a slow Redis on that clock. The load of the machine changes neither."""

import asyncio
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hiredis import Reader

from stream_server.store.redis import client, lanes, pipelined_connection, scripts
from tests.stream_server.store.redis.scripted_redis import UnixServer

CHUNK = 65_536


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


class FarRedis(UnixServer):
    """A proxy to a real Redis that delays its answers by the jumping clock.

    All commands that come together wait ``seconds``, and each of them ``seconds_each`` more.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._far = str(path)
        self.seconds = self.seconds_each = 0.0

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked, answered = Reader(), Reader()
        with socket.socket(socket.AF_UNIX) as far:
            far.connect(self._far)
            while data := await reader.read(CHUNK):
                asked.feed(data)
                far.sendall(data)
                count = missing = _complete(asked)
                answers = b""
                while missing > 0:
                    got = far.recv(CHUNK)
                    assert got, "Redis has left"
                    answers += got
                    answered.feed(got)
                    missing -= _complete(answered)
                await asyncio.sleep(self.seconds + count * self.seconds_each)  # the delay that the test asks for
                writer.write(answers)


def _complete(reader: Reader) -> int:
    count = 0
    while reader.gets() is not False:
        count += 1
    return count
