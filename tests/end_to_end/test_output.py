"""A server whose output nobody reads, or which has none, serves and stops like any other."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import aiohttp
import pytest

from tests.command_line import COMMAND
from tests.end_to_end.server import Server
from tests.preloaded.launcher import AnyProcess
from tests.redis_process import free_port
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

STANDARD = ("0", "1", "2")


class ServerOnPort(Server):
    """A server that cannot announce its address, because ``output`` takes nothing."""

    def __init__(self, folder: Path, output: int, *flags: str) -> None:
        self.port = free_port()
        super().__init__(folder, "--port", str(self.port), *flags, preloaded=False)  # its output is no pipe
        self.output = output

    def launch(self, env: dict[str, str], out: IO[bytes], err: IO[bytes]) -> AnyProcess:
        out.write(f"stream-server listening on http://127.0.0.1:{self.port}\n".encode())
        out.flush()
        with os.fdopen(os.dup(self.output), "wb") as output:
            return super().launch(env, output, output)


@contextmanager
def full_pipe() -> Iterator[int]:
    """Yield the end for writing of a pipe that is full, and that nobody reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    yield writer
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_full_pipe_holds_neither_the_server_nor_its_stop(own_folder: Path, workers: int) -> None:
    """Each SIGHUP writes a line of the log, of each worker."""
    with full_pipe() as output:
        server = ServerOnPort(own_folder, output, "--workers", str(workers))
        async with server, aiohttp.ClientSession() as client:
            assert server.process is not None
            for _ in range(3):
                server.process.send_signal(signal.SIGHUP)
                async with client.get(f"{server.address}/metrics") as answer:
                    assert "stream_server_output_lines_dropped_total" in await answer.text()
            await asyncio.to_thread(server.stop)


def standard_files(pid: int) -> list[str]:
    return [str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in STANDARD]


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_server_without_standard_files_lends_their_numbers_to_nothing_else(
    own_folder: Path, workers: int
) -> None:
    port = free_port()
    serve = f"exec {' '.join(COMMAND)} serve --port {port} --workers {workers} 0<&- 1>&- 2>&-"
    process = subprocess.Popen(["sh", "-c", serve])  # noqa: ASYNC220 - it takes a moment, and nothing else runs
    try:
        async with aiohttp.ClientSession() as session:

            async def is_ready() -> bool:
                assert process.poll() is None
                with suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                        return answer.status == 200
                return False

            await eventually(is_ready)
            assert standard_files(process.pid) == ["/dev/null"] * 3
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                assert "stream_server_worker_up" in await answer.text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)
