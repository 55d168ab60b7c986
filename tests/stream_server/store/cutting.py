"""A way to Redis that loses answers: the script runs, and the connection ends before its answer comes back."""

import asyncio
import contextlib
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self


class CuttingProxy:
    """Passes everything on between a unix socket of its own and Redis', until it is told to cut.

    ``cut`` is how many more answers to ``EVALSHA`` are lost; ``fired`` how many were.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._folder = tempfile.TemporaryDirectory(prefix="ssc-")
        self._path = Path(self._folder.name) / "p.sock"
        self.url = f"unix://{self._path}"
        self.cut = 0
        self.fired = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._folder.cleanup()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        redis_reader, redis_writer = await asyncio.open_unix_connection(self._target)
        try:
            while question := await reader.read(65536):
                redis_writer.write(question)
                answer = await redis_reader.read(65536)
                if self.cut and b"EVALSHA" in question:
                    self.cut -= 1
                    self.fired += 1
                    break
                writer.write(answer)
                await writer.drain()
        finally:
            self._open.discard(task)
            for each in (redis_writer, writer):
                each.close()
                with contextlib.suppress(OSError):
                    await each.wait_closed()
