"""A real Redis for tests: its own process, socket, optional TCP port, and folder."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Self

import redis

from stream_server.runtime.embedded_redis import PROGRAMS, carried, engine_of_binary
from tests.waiting import PATIENCE, wait_for_process


@cache
def binaries() -> dict[str, Path]:
    """Return the engines of this machine that the server runs on: the path of each by its name, such as ``Valkey 9.1``.

    They are those on PATH and that of the installed package. The first is the newest, which the server itself takes.
    """
    every = [Path(folder) / program for folder in os.get_exec_path() for program in PROGRAMS]
    told = [(engine_of_binary(path), path) for path in (*every, *carried()) if path.exists()]
    usable = sorted((engine, path) for engine, path in told if engine is not None and not engine.fault)
    return {str(engine).rpartition(".")[0]: path for engine, path in reversed(usable)}


def newest() -> Path:
    """Return the engine that the server takes. Fails the test if this machine has none."""
    assert binaries(), "no valkey-server or redis-server: neither on PATH nor in an installed package"
    return next(iter(binaries().values()))


DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
"""Options of a Redis that keeps each acknowledged write when it is killed."""


FIRST_PORT, LAST_PORT = 12_000, 30_000
"""Ports that Linux gives to no outgoing connection, so a process that was killed can have its port again."""


def free_port() -> int:
    """Return a TCP port that is free now, and that no outgoing connection of another test takes meanwhile."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return TCP ports that are free now on the loopback."""
    found: list[int] = []
    chance = random.SystemRandom()  # the common one may be seeded, and programs then look for the same ports
    with ExitStack() as stack:
        while len(found) < count:
            port = chance.randrange(FIRST_PORT, LAST_PORT)
            with suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
    return found


class RedisProcess:
    """A redis-server that a test may kill, pause and start again on the same data.

    With ``port`` None it has only a unix socket. Otherwise it also has this TCP port (0: any free one), and ``url``
    names it.
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

    def start(self, seconds: float = PATIENCE) -> Self:
        """Start it and wait until it answers PING. Raises TimeoutError after ``seconds``."""
        command = [*self._command, *self._replica_of]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        wait_for_process(self.process, self._answers, seconds=seconds, log=lambda: self.log)
        return self

    @property
    def address(self) -> tuple[str, int]:
        assert self.port is not None
        return "127.0.0.1", self.port

    @property
    def log(self) -> str:
        return (self.folder / "redis.log").read_text(errors="replace")

    def replica_of(self, other: "RedisProcess") -> Self:
        """Become a replica of ``other``, which has a TCP port, now and after each start.

        The replica answers before it has the data: wait for ``info("replication")["master_link_status"] == "up"``.
        """
        host, port = other.address
        self._replica_of = ["--replicaof", host, str(port)]
        if self.process is not None and self.process.poll() is None:
            with self.client() as client:
                client.replicaof(host, str(port))
        return self

    def client(self) -> "redis.Redis":
        # Without a name for the driver, redis-py does not read its version from its metadata, which takes milliseconds.
        return redis.Redis(unix_socket_path=str(self.socket), driver_info=None)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE)

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.resume()
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answers(self) -> bool:
        with self.client() as client:
            try:
                return bool(client.ping())
            except redis.AuthenticationError:
                return True  # it has users, and answers none without a password
            except redis.RedisError:
                return False


def private_redis(*options: str, port: int | None = None) -> RedisProcess:
    """Return a Redis that is not started yet. It uses the newest engine and keeps each acknowledged write."""
    return RedisProcess(newest(), *DURABLE, *options, port=port)
