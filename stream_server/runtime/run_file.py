"""The run file: ``server.json``, with the URLs of a running server and its Redis, for the commands on this machine.

See ``commands/server_access.py``. It stands in the data folder, and in a temporary folder of each server, where
commands find the servers that nobody named. The server locks it: a file that nobody locks is of a server that was
killed. Only its owner may read it, because the URL of Redis may hold a password.

The temporary folder has no secret that is worth something after the server's end. So it has the key of tokens only if
the server has made it for this run, and never a password of Redis.
"""

import fcntl
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from stream_server.config.data_folder import SECRET_FILE, make_private, write_private
from stream_server.config.settings import Config, InvalidSetting
from stream_server.runtime.private_folder import PrivateFolder, own_folders
from stream_server.store.redis import address

logger = logging.getLogger(__name__)

RUN_FILE_NAME = "server.json"

SHARED_SETTINGS = (
    "timeline_max", "fanout_batch_size", "consent", "ingest_subjects", "write_replicas", "log_max_seconds",
    "log_max_bytes", "home_idle_days",
)  # fmt: skip
"""Settings that all processes need alike that change the data of one Redis: servers, job workers and commands."""


class RunFile(msgspec.Struct, frozen=True):
    """The content of the run file ``server.json``.

    Attributes:
        redis: URL of the server's Redis; empty if it has a password that must not stand here.
        url: HTTP address of the server on its machine.
        public_url: Its address for clients, empty if it is no other one.
        pid: Id of the server process to send signals to; with several workers, of the supervisor.
        settings: Values of the :data:`SHARED_SETTINGS`.
        data_dir: Absolute path of the data folder; empty if the server has none.
        locked: Whether the server holds the lock of the file. Version 1.0 and file systems without locks have none.
    """

    redis: str
    url: str
    pid: int = 0
    settings: dict[str, Any] = {}
    data_dir: str = ""
    locked: bool = False
    public_url: str = ""


@contextmanager
def kept_run_file(config: Config, *, is_needed: bool = True, made_secret: str = "") -> Iterator[None]:
    """Keep the run files while the block runs: one in the data folder, if there is one, and one in a temporary folder.

    Unless the one in the data folder is needed, as for an embedded Redis, the server also runs without it: its other
    data are elsewhere. ``made_secret`` is the key of tokens if the server has made it for this run.
    """
    settings = {name: getattr(config, name) for name in SHARED_SETTINGS}
    data_dir = str(Path(config.data_dir).absolute()) if config.data_dir else ""
    url = server_url(config)
    running = RunFile(config.redis, url, os.getpid(), settings, data_dir, public_url=config.public_url)
    with ExitStack() as stack:
        if data_dir:
            try:
                stack.enter_context(_kept(Path(data_dir), running))
            except (OSError, InvalidSetting) as error:
                if is_needed:
                    raise
                logger.warning("commands cannot find this server by its data folder, which cannot be used: %s", error)
                running = msgspec.structs.replace(running, data_dir="")
        try:
            private = PrivateFolder(0)  # without a socket
            stack.callback(private.remove)
            if made_secret:
                write_private(private.path / SECRET_FILE, made_secret.encode())
            shown = "" if address.may_contain_password(config.redis) else config.redis
            stack.enter_context(_kept(private.path, msgspec.structs.replace(running, redis=shown)))
        except OSError as error:
            logger.info("commands without --data-dir cannot find this server: %s", error)
        yield


@contextmanager
def _kept(folder: Path, running: RunFile) -> Iterator[None]:
    """Keep a locked run file in the folder. At the end remove it, unless it is that of another server by now."""
    lock = _write(folder, running)
    try:
        yield
    finally:
        with suppress(OSError):
            if os.path.samestat(os.fstat(lock), _path(folder).stat()):
                _path(folder).unlink()
        os.close(lock)


def server_url(config: Config) -> str:
    """Return the URL at which a server with these settings listens; an IPv6 address stands in brackets."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{config.port}"


def find_running() -> dict[str, RunFile]:
    """Return the run files of this user's servers on this machine, by the folders to give as ``data_dir``.

    Servers that share a data folder count as one. Those of other users are left out: who wrote their files could send
    a token anywhere. A server whose folder for temporary files (``TMPDIR``) is another one is not found.
    """
    found: dict[str, RunFile] = {}
    for folder in own_folders(Path(tempfile.gettempdir())):
        running = read(folder)
        if running is not None:
            found.setdefault(running.data_dir or str(folder), running)
    return found


def read(folder: str | Path) -> RunFile | None:
    """Return the run file in the folder; None if it is absent or unreadable, or of a server that was killed."""
    try:
        with _path(folder).open("rb") as file:
            running = msgspec.json.decode(file.read(), type=RunFile)
            return None if running.locked and _is_free(file) else running
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _is_free(file: IO[bytes]) -> bool:
    """Return whether no process holds the lock of the file."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write(folder: Path, running: RunFile) -> int:
    """Write the run file into the folder, and lock it. Return the descriptor that holds the lock.

    A reader sees the old or the new file, never a part, and never the new one without its lock.
    """
    make_private(folder)
    path = _path(folder)
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    lock = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            running = msgspec.structs.replace(running, locked=True)
        os.write(lock, msgspec.json.encode(running))
        partial.replace(path)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _path(folder: str | Path) -> Path:
    return Path(folder) / RUN_FILE_NAME
