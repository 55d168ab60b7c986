"""A proxy to Redis that loses answers."""

import asyncio
import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


class CuttingProxy:
    """A proxy to the unix socket of Redis that can lose answers: the script runs, and the connection ends.

    ``cut`` is the number of answers to ``EVALSHA`` still to lose, ``fired`` the number of lost ones.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._folder = tempfile.TemporaryDirectory(prefix="ssc-")
        self._path = Path(self._folder.name) / "p.sock"
        self.url = f"unix://{self._path}"
        self.cut = 0
        self.fired = 0
        self._server: asyncio.Server | None = None
        self._served: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._served)
        self._folder.cleanup()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served.append(task)
        redis_reader, redis_writer = await asyncio.open_unix_connection(self._target)
        self._writers += (writer, redis_writer)
        asked = _Asked()
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self._question(reader, redis_writer, asked), self._answer(redis_reader, writer, asked))

    async def _question(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: "_Asked") -> None:
        while question := await reader.read(65536):
            asked.script = b"EVALSHA" in question
            writer.write(question)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: "_Asked") -> None:
        while answer := await reader.read(65536):
            if self.cut and asked.script:
                self.cut -= 1
                self.fired += 1
                break
            writer.write(answer)
        writer.close()


@dataclass
class _Asked:
    """Whether the last command on a connection was a script."""

    script: bool = False
