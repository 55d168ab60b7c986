"""The real command, started as a user starts it, on a free port and a folder of its own."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from tests.waiting import PATIENCE

SECRET = "an end-to-end secret that is longer than 32 bytes"
ROOT = Path(__file__).resolve().parents[2]
ANNOUNCED = "stream-server listening on "


class Server:
    """``python -m stream_server serve`` with ``flags``; its data folder outlives a kill, so it can start again.

    ``module`` is run in place of the real command, ``variables`` stand in its environment too.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        module: str = "stream_server",
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.folder = folder
        self.flags = flags
        self.module = module
        self.variables = variables
        self.address = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._answered: set[bytes] = set()
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def data(self) -> Path:
        """Its data folder."""
        return self.folder / "data"

    @property
    def log(self) -> str:
        """All that it wrote to stderr, over all its starts."""
        return (self.folder / "err.log").read_text(errors="replace")

    def start(self) -> Self:
        """Start it and wait until it is ready; raises TimeoutError with its log after 40 s."""
        with (self.folder / "out.log").open("wb") as out, (self.folder / "err.log").open("ab") as err:
            self.process = subprocess.Popen(
                self._command(), cwd=ROOT, env={**environment(), **self.variables},
                stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            )  # fmt: skip
        self._answered.clear()
        end = time.monotonic() + 40
        while not self._ready():
            if time.monotonic() > end or self.process.poll() is not None:
                self.kill()
                raise TimeoutError(f"the server did not start: {self.log[-3000:]}")
            time.sleep(0.02)  # the condition is looked at above; this only paces it
        return self

    def stop(self, seconds: float = 10.0) -> None:
        """SIGTERM; it must end by itself with code 0 and have no traceback in its log."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        assert code == 0, f"exit code {code}: {self.log[-3000:]}"
        assert "Traceback" not in self.log, self.log[-5000:]

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer does it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        if error is None:
            self.stop()
        else:
            self.kill()

    def _command(self) -> list[str]:
        return [
            sys.executable, "-m", self.module, "serve", "--port", "0", "--data-dir", str(self.data), *self.flags
        ]  # fmt: skip

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
        """Whether every worker has answered once; the address is told when the first of them does."""
        if self._workers == 1:
            return True
        with urllib.request.urlopen(self.address + "/metrics", timeout=2) as answer:
            self._answered.update(re.findall(rb'^stream_server_process_info\{pid="(\d+)"', answer.read(), re.MULTILINE))
        return len(self._answered) >= self._workers

    @property
    def _workers(self) -> int:
        return int(self.flags[self.flags.index("--workers") + 1]) if "--workers" in self.flags else 1


def environment() -> dict[str, str]:
    """The environment of the server: this one without settings of its own, cheap password hashes, and patience."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_SERVER_")}
    return own | {
        "STREAM_SERVER_JWT_SECRET": SECRET,
        "STREAM_SERVER_PASSWORD_MEMORY_KIB": "8",
        "STREAM_SERVER_PASSWORD_ROUNDS": "1",
        "STREAM_SERVER_REDIS_TIMEOUT_SECONDS": str(PATIENCE),
        "PYTHONUNBUFFERED": "1",
    }
