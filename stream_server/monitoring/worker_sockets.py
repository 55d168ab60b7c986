"""Lets the workers of one server ask each other: each listens on a unix socket, in a folder that only their user opens.

A worker that is asked by a client asks all others at the same time. One that does not answer in time counts as silent.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 1.0
"""Seconds that all other workers together have to answer. A worker whose event loop is blocked for longer is silent."""

MAX_QUESTION_BYTES = 64
MAX_REPORT_BYTES = 8 * 2**20

SOCKET_NAME_BYTES = len("worker-999.sock")
"""Length in bytes of the longest name of a socket."""

REPORT, METRICS = "report", "metrics"
"""The questions to a worker: its `HostState` as JSON, and its metrics as text."""

Answer = Callable[[str], Awaitable[bytes]]
"""Returns the answer to a question, which is a word."""


class WorkerSockets:
    """The unix sockets by which the workers of one server ask each other. This worker is number ``slot`` of ``count``.

    ``folder`` is the folder of the sockets, or None for a server of one process.
    """

    def __init__(self, folder: Path | None = None, slot: int = 1, count: int = 1) -> None:
        self.slot = slot
        self._folder = folder
        self._count = count

    @asynccontextmanager
    async def offered(self, answer: Answer) -> AsyncIterator[None]:
        """Answer the questions of the other workers during the block.

        If the socket cannot be bound, the server runs without it, and the others see this worker as silent.
        """
        if self._folder is None:
            yield
            return
        path = self._path(self.slot)
        try:
            server = await self._listen(path, answer)
        except OSError as error:
            logger.warning("the other workers cannot ask this one: %s", error.strerror or error)
            yield
            return
        try:
            yield
        finally:
            server.close()
            _remove(path)

    async def ask_others(self, question: str) -> dict[int, bytes | None]:
        """Ask all other workers at the same time.

        Return each answer by the worker's number; None if it does not answer.
        """
        others = [slot for slot in range(1, self._count + 1) if slot != self.slot]
        answers = await asyncio.gather(*(self._ask(slot, question) for slot in others))
        return dict(zip(others, answers, strict=True))

    async def _listen(self, path: Path, answer: Answer) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                async with asyncio.timeout(DEADLINE_SECONDS):
                    question = await reader.readline()
                    writer.write(await answer(question.decode(errors="replace").strip()))
                    await writer.drain()
            except (OSError, TimeoutError, ValueError):
                pass  # the other worker has ended, or does not read
            finally:
                writer.close()

        return await asyncio.start_unix_server(serve, sock=bind_private(path), limit=MAX_QUESTION_BYTES)

    async def _ask(self, slot: int, question: str) -> bytes | None:
        assert self._folder is not None
        with suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(DEADLINE_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._path(slot))
                try:
                    writer.write(question.encode() + b"\n")
                    return await _read_all(reader)
                finally:
                    writer.close()
        return None

    def _path(self, slot: int) -> Path:
        assert self._folder is not None
        return self._folder / f"worker-{slot}.sock"


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def bind_private(path: Path) -> socket.socket:
    """Return a socket that is bound to ``path``, for this user only. Raises OSError if that is not possible."""
    path.unlink(missing_ok=True)  # of a predecessor that was killed
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(path))
        path.chmod(0o600)
    except OSError:
        bound.close()
        raise
    return bound


async def _read_all(reader: asyncio.StreamReader) -> bytes | None:
    """Return all bytes up to the end. None if there are none, or too many."""
    data = bytearray()
    while chunk := await reader.read(65_536):
        data += chunk
        if len(data) > MAX_REPORT_BYTES:
            return None
    return bytes(data) or None
