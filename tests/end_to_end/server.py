"""The real command, started as a user starts it, on a free port and with its own data folder."""

import asyncio
import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Any, Self

import redis

from tests.preloaded.launcher import AnyProcess, start_module
from tests.waiting import PATIENCE, wait_for_process

SECRET = "an end-to-end secret that is longer than 32 bytes"
ROOT = Path(__file__).resolve().parents[2]
ANNOUNCED = "stream-server listening on "


class Server:
    """``python -m stream_server serve`` with ``flags``. Its data folder survives a kill, so it can start again.

    ``variables`` are further environment variables; None removes one.
    """

    START_SECONDS = 2 * PATIENCE

    def __init__(
        self,
        folder: Path,
        *flags: str,
        module: str = "stream_server",
        variables: Mapping[str, str | None] = MappingProxyType({}),
        preloaded: bool = True,
    ) -> None:
        self.folder = folder
        self.flags = flags
        self.module = module
        self.variables = variables
        self.preloaded = preloaded
        self.address = ""
        self.process: AnyProcess | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def redis_url(self) -> str:
        return str(json.loads((self.data / "server.json").read_text())["redis"])

    def redis_client(self) -> Any:
        return redis.Redis.from_url(self.redis_url, driver_info=None)

    @property
    def log(self) -> str:
        return (self.folder / "err.log").read_text(errors="replace")

    def start(self) -> Self:
        """Start the server and wait until it is ready. Raises TimeoutError with its log after START_SECONDS."""
        env = {name: value for name, value in {**environment(), **self.variables}.items() if value is not None}
        out_log, err_log = self.folder / "out.log", self.folder / "err.log"
        with out_log.open("wb") as out, err_log.open("ab") as err:
            self.process = self.launch(env, out, err)
        try:
            wait_for_process(self.process, self._ready, seconds=self.START_SECONDS, log=lambda: self.log)
        except TimeoutError:
            self.kill()
            raise
        return self

    def launch(self, env: dict[str, str], out: IO[bytes], err: IO[bytes]) -> AnyProcess:
        """Start the process of the server."""
        return start_module(self._arguments(), env, out, err, preloaded=self.preloaded)

    def stop(self, seconds: float = PATIENCE) -> None:
        """Send SIGTERM. The server must end with exit code 0 and without a traceback in its log."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        assert code == 0, f"exit code {code}: {self.log[-3000:]}"
        assert "Traceback" not in self.log, self.log[-5000:]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        if error is None:
            self.stop()
        else:
            self.kill()

    async def __aenter__(self) -> Self:
        """Start in a thread, because a proxy of the test may run on its event loop."""
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, tb)

    def _arguments(self) -> list[str]:
        return [self.module, "serve", "--port", "0", "--data-dir", str(self.data), *self.flags]

    def _ready(self) -> bool:
        lines = (self.folder / "out.log").read_text().splitlines()
        self.address = next((line.removeprefix(ANNOUNCED) for line in lines if line.startswith(ANNOUNCED)), "")
        if not self.address:
            return False
        try:
            with urllib.request.urlopen(self.address + "/readyz", timeout=2) as answer:
                return bool(answer.status == 200) and self._all_serve()
        except (urllib.error.URLError, OSError):
            return False

    def _all_serve(self) -> bool:
        """Whether every worker is up. The address is announced when the first worker is ready."""
        if self._workers == 1:
            return True
        with urllib.request.urlopen(self.address + "/metrics", timeout=2) as answer:
            up = re.findall(rb'^stream_server_worker_up\{worker="\d+"\} 1', answer.read(), re.MULTILINE)
        return len(up) == self._workers

    @property
    def _workers(self) -> int:
        return int(self.flags[self.flags.index("--workers") + 1]) if "--workers" in self.flags else 1


@contextmanager
def restartable(folder: Path, *flags: str) -> Iterator[Server]:
    """Run a server that a test may kill and start again: it keeps its port."""
    server = Server(folder, *flags).start()
    server.flags = (*server.flags, "--port", server.address.rpartition(":")[2])
    try:
        yield server
        server.stop()
    finally:
        server.kill()


def environment() -> dict[str, str]:
    """Return this environment without settings of the server, with cheap password hashes and a long timeout."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_SERVER_")}
    return own | {
        "STREAM_SERVER_JWT_SECRET": SECRET,
        "STREAM_SERVER_LIMITS": "off",
        "STREAM_SERVER_PASSWORD_MEMORY_KIB": "8",
        "STREAM_SERVER_REDIS_TIMEOUT_SECONDS": str(PATIENCE),
        "PYTHONUNBUFFERED": "1",
    }
