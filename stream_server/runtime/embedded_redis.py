"""The embedded Redis: a private child process on a unix socket, for a server without ``--redis``.

The program is Valkey or Redis. :func:`find_redis_binary` chooses it.

The server holds a pipe to a second process, the shim (``shim.py``), which ends Redis when the pipe closes. So Redis
never outlives the server. Shim and Redis run in a session of their own: Ctrl-C reaches only the server, and Redis still
runs during the goodbyes.

The data folder holds:

- what Redis writes: ``appendonlydir/``;
- ``redis.lock``, which Redis holds as long as it runs;
- ``redis.version``: the program and version that wrote the data, see ``redis_folder``;
- ``redis.log``.

The socket, and without ``--data-dir`` the data, are in a private temporary folder (``private_folder``), because the
path of a socket may have only about a hundred bytes. The server removes that folder when it stops, or else the shim
does. After ``kill -9`` of both, the next server on the machine does.

Each start rewrites the append-only file before the server uses Redis. If a power failure cut the file within a write,
Redis can load the file once. Without a rewrite, the start after that would lose an acknowledged entry.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from stream_server.config.config import make_private
from stream_server.downloads import native
from stream_server.runtime import redis_folder
from stream_server.runtime.private_folder import PrivateFolder
from stream_server.store.redis.engine import NEEDED, Engine, parse_engine

PROGRAMS = ("valkey-server", "redis-server")
"""Names of the programs on PATH that can be the embedded Redis."""

SILENCE_SECONDS = 15.0
"""Seconds without any answer, not even that data are loading, after which the start of Redis has failed."""

STOP_SECONDS = 8.0
"""Seconds that the shim has to end Redis before the server kills the shim."""

SOCKET = "redis.sock"

SHIM = Path(__file__).with_name("shim.py")


class EmbeddedRedisError(Exception):
    """The embedded Redis cannot be started or used. The message is a sentence for the person who started the server."""


class Binary(NamedTuple):
    """A program that can be the embedded Redis: its path, and its name and version."""

    path: Path
    engine: Engine


class EmbeddedRedis:
    """A private Redis process that listens on the unix socket ``socket``. Create it with :meth:`start`."""

    def __init__(self, found: Binary, data_dir: Path | None) -> None:
        self.binary, self.engine = found
        self._private = PrivateFolder(len(SOCKET))
        self.folder = (self._private.path / "data" if data_dir is None else data_dir).absolute()
        self.socket = self._private.path / SOCKET
        self.url = f"unix://{self.socket}"
        self.redis_pid = self.shim_pid = 0
        self._shim: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._dead: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._stopping = False
        self._log_from = 0

    @classmethod
    async def start(
        cls,
        data_dir: Path | None,
        *,
        appendfsync: str = "always",
        extra: Sequence[str] = (),
        binary: Path | None = None,
    ) -> Self:
        """Start Redis, and return it when it has loaded its data and answers; raises :class:`EmbeddedRedisError`.

        Args:
            data_dir: Folder of the data; None uses a temporary folder, which :meth:`stop` deletes.
            appendfsync: When Redis syncs its file to disk, as in ``redis.conf``.
            extra: Further arguments of the program.
            binary: The program to run; None searches this machine.
        """
        folder = None if data_dir is None else await asyncio.to_thread(data_dir.expanduser)
        found = await asyncio.to_thread(find_redis_binary, binary, folder)
        embedded = cls(found, folder)
        try:
            await embedded._launch([*_options(embedded, appendfsync), *extra])
        except BaseException:  # also when cancelled: no process may be left
            await embedded.stop()
            raise
        return embedded

    async def stop(self) -> None:
        """Stop Redis, unlock the data folder and delete the socket's temporary folder. A second call does nothing."""
        self._stopping = True
        if self._shim is not None:
            await self._end_shim(self._shim)
        if self._watching is not None:
            await self._watching
        self._private.remove()

    async def wait_exit(self) -> int:
        """Wait until Redis ends by itself. Return its exit code or, if a signal ended it, minus the signal's number.

        After a call of :meth:`stop` this method never returns, so cancel it.
        """
        return await asyncio.shield(self._dead)

    async def _launch(self, options: list[str]) -> None:
        """Run the shim (Redis' parent), which locks the data folder and starts Redis. Wait until Redis is usable."""
        log = self.folder / redis_folder.LOG_FILE
        try:
            make_private(self.folder)
            self._log_from = log.stat().st_size if log.exists() else 0
        except OSError as error:
            raise EmbeddedRedisError(f"the data folder {self.folder} cannot be used: {error.strerror}") from None
        lock, private = self.folder / redis_folder.LOCK_FILE, self._private.path
        arguments: list[str | Path] = [lock, log, private, self.binary, *options]
        self._shim = shim = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", SHIM, *arguments,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.shim_pid = shim.pid
        await self._expect(shim, "locked")
        fault = redis_folder.start_fault(self.folder, self.engine)
        if fault:
            raise EmbeddedRedisError(fault)
        assert shim.stdin is not None
        shim.stdin.write(b"go\n")
        self.redis_pid = int(await self._expect(shim, "started"))
        self._watching = asyncio.create_task(self._watch(shim), name="embedded-redis")
        no_retry = Retry(NoBackoff(), 0)
        async with Redis(unix_socket_path=str(self.socket), retry=no_retry, socket_timeout=5.0) as client:
            await self._until_answering(client)
            await self._rewrite(client)
        redis_folder.record_engine(self.folder, self.engine)

    async def _expect(self, shim: asyncio.subprocess.Process, word: str) -> str:
        """Return what follows ``word`` in the shim's next line. Raises EmbeddedRedisError for another word."""
        assert shim.stdout is not None
        answer, _, rest = (await shim.stdout.readline()).decode().strip().partition(" ")
        if answer == word:
            return rest
        if answer == "busy":
            other = f"another server (its Redis is process {rest or '?'})"
            raise EmbeddedRedisError(f"the data folder {self.folder} is in use by {other}")
        raise EmbeddedRedisError(f"{self.binary.name} was not started: {rest or 'its parent process ended'}")

    async def _until_answering(self, client: Redis) -> None:
        """Wait until Redis answers PING; raises :class:`EmbeddedRedisError` if Redis ends or is silent for too long."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + SILENCE_SECONDS
        while clock() < deadline:
            if self._dead.done():
                raise EmbeddedRedisError(
                    self.with_log(f"{self.binary.name} ended at once with code {self._dead.result()}")
                )
            try:
                await client.ping()
            except exceptions.BusyLoadingError:  # loading much data may take long
                deadline = clock() + SILENCE_SECONDS
            except (exceptions.ConnectionError, exceptions.TimeoutError):
                pass
            else:
                return
            await asyncio.sleep(0.005)
        raise EmbeddedRedisError(self.with_log(f"{self.binary.name} did not answer for {SILENCE_SECONDS:g} s"))

    async def _rewrite(self, client: Redis) -> None:
        """Make Redis rewrite its append-only file, and wait until this is done.

        Redis can load a file that a power failure cut, but only once: the next start would lose the writes since then.
        """
        try:
            await client.bgrewriteaof()
            while True:
                state = await client.info("persistence")
                if not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]):
                    break
                await asyncio.sleep(0.005)
        except exceptions.RedisError as error:
            raise EmbeddedRedisError(self.with_log(f"the append-only file was not rewritten: {error}")) from None
        if state["aof_last_bgrewrite_status"] != "ok":
            raise EmbeddedRedisError(self.with_log("the append-only file could not be rewritten"))

    def with_log(self, sentence: str) -> str:
        """Return ``sentence`` and, below it, the last five lines that Redis has logged since this start."""
        try:
            with (self.folder / redis_folder.LOG_FILE).open("rb") as log:
                log.seek(self._log_from)
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        return "\n  ".join([sentence + (":" if lines else ""), *lines[-5:]])

    async def _watch(self, shim: asyncio.subprocess.Process) -> None:
        """Wait until the shim ends. Pass Redis' exit code to :meth:`wait_exit`. If the shim was killed, kill Redis."""
        assert shim.stdout is not None
        code = None
        async for line in shim.stdout:
            if line.startswith(b"exit "):
                code = int(line.split()[1])
        if code is None:
            _kill(self.redis_pid)
            code = -signal.SIGKILL
        if not self._stopping:
            self._dead.set_result(code)

    async def _end_shim(self, shim: asyncio.subprocess.Process) -> None:
        """Close the pipe to the shim, which then stops Redis; kill the shim after :data:`STOP_SECONDS`."""
        assert shim.stdin is not None
        shim.stdin.close()
        try:
            await asyncio.wait_for(shim.wait(), STOP_SECONDS)
        except TimeoutError:
            _kill(shim.pid)
            await shim.wait()


def find_redis_binary(given: Path | None = None, folder: Path | None = None) -> Binary:
    """Return the program for the embedded Redis: ``given`` or, if it is None, the best on this machine.

    The search looks at each ``valkey-server`` and ``redis-server`` on PATH, and at the one that ``stream-server fetch``
    downloaded. The best is the newest of those that can read the data in ``folder``. Where none can, it is the newest.
    The search blocks for some milliseconds. Raises :class:`EmbeddedRedisError` if it finds no program that is new
    enough.
    """
    if given is not None:
        engine = engine_of_binary(given)
        if engine is None or engine.fault:
            raise EmbeddedRedisError(f"{given} is not {NEEDED}" + (f": it is {engine}" if engine else ""))
        return Binary(given, engine)
    on_path = (Path(entry) / program for entry in os.get_exec_path() if entry for program in PROGRAMS)
    found = list(_usable([*on_path, native.path(native.VALKEY)]))
    if not found:
        fetch = "run `stream-server fetch`, or " if native.offered(native.VALKEY) else ""
        install = f"install {NEEDED} ({native.INSTALL_REDIS})"
        raise EmbeddedRedisError(
            f"no valkey-server or redis-server found: {fetch}{install}, or name one by --redis URL"
        )
    written_by = None
    with suppress(OSError):  # the start or the doctor says why the folder cannot be read
        written_by = None if folder is None else redis_folder.recorded_engine(folder)
    readers = [one for one in found if written_by is None or one.engine.can_read(written_by)]
    return max(readers or found, key=lambda one: one.engine)


def engine_of_binary(binary: Path) -> Engine | None:
    """Return name and version by ``binary --version``; None if the program does not run or is neither of the two."""
    try:
        output = subprocess.run(  # noqa: S603 - the purpose is to find a program on PATH or in a package
            [binary, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_engine(output.decode(errors="replace"))


def _usable(paths: Iterable[Path]) -> Iterator[Binary]:
    """Yield path and engine of each of ``paths`` that is a runnable program of a version that the server runs on."""
    for path in paths:
        engine = engine_of_binary(path) if os.access(path, os.X_OK) else None  # False also in a folder of another user
        if engine is not None and not engine.fault:
            yield Binary(path, engine)


def _options(embedded: EmbeddedRedis, appendfsync: str) -> list[str]:
    """Return the arguments of the program: no TCP port, all data in the append-only file, no eviction."""
    return [
        "--port", "0", "--unixsocket", str(embedded.socket), "--unixsocketperm", "700", "--dir", str(embedded.folder),
        "--daemonize", "no", "--logfile", "", "--save", "", "--appendonly", "yes", "--appendfsync", appendfsync,
        "--maxmemory-policy", "noeviction",
        # The entities of a status are one long field. With room for it, compact hashes save a third of the memory.
        "--hash-max-listpack-value", "1024",
        # Redis disconnects a slow feed only far behind; the feed then reads on from the log.
        "--client-output-buffer-limit", "pubsub", "256mb", "64mb", "60",
    ]  # fmt: skip


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
