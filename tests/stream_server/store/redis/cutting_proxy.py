"""A proxy to Redis that loses answers."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

from tests.stream_server.store.redis.scripted_redis import UnixServer


class CuttingProxy(UnixServer):
    """A proxy to the unix socket of Redis that can lose answers: the script runs, and the connection ends.

    ``cut`` is the number of answers to ``EVALSHA`` still to lose, ``fired`` the number of lost ones.
    """

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._target = target
        self.cut = 0
        self.fired = 0

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        redis_reader, redis_writer = await asyncio.open_unix_connection(self._target)
        asked = _Asked()
        with contextlib.closing(redis_writer), contextlib.suppress(ConnectionError):
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
