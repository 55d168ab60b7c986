"""A Redis with scripted answers, for answers that a real one gives only in trouble."""

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from hiredis import Reader

from tests.listening import stop_listening

CUT = b""
"""Close the connection in place of an answer."""

SILENCE = None
"""Send no answer, now and later on this connection."""

Reply = bytes | None

USUAL: dict[str, Reply] = {"SCRIPT": b"+ok\r\n"}


class UnixServer:
    """A server on a unix socket in place of Redis. A subclass converses with each client."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sss-")
        self._path = Path(self._folder.name) / "f.sock"
        self.url = f"unix://{self._path}"
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def vanish(self) -> None:
        """Refuse new connections, and keep the open ones."""
        assert self._server is not None
        await stop_listening(self._server)
        self._path.unlink(missing_ok=True)  # from Python 3.13 on the server removes it itself

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._server is not None
        await stop_listening(self._server)
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        self._folder.cleanup()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        self.connections += 1
        try:
            await self._converse(reader, writer)
        finally:
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


class ScriptedRedis(UnixServer):
    """A server that answers each command by its next line, and repeats the last line. It answers others by PONG.

    A line is raw RESP, :data:`CUT` or :data:`SILENCE`. ``seen`` has the commands, ``connections`` counts the
    connections, and ``left`` those that the client closed.
    """

    def __init__(self, **lines: Iterable[Reply]) -> None:
        super().__init__()
        self._lines = {name: list(each) for name, each in lines.items()}
        self.seen: list[str] = []
        self.left = 0

    def count(self, name: str) -> int:
        return self.seen.count(name)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = Reader()
        while data := await reader.read(65536):
            parser.feed(data)
            while (command := parser.gets()) is not False:
                reply = self._next(command[0].decode().upper())
                if reply == CUT:
                    return
                if reply is SILENCE:
                    await reader.read()
                    break
                writer.write(reply)
        self.left += 1

    def _next(self, name: str) -> Reply:
        self.seen.append(name)
        lines = self._lines.get(name)
        if lines is None:
            return USUAL.get(name, b"+PONG\r\n")
        return lines.pop(0) if len(lines) > 1 else lines[0]
