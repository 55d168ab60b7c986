"""The checks of ``doctor`` for the machine: programs, limits, settings, and the data folder of a server.

`CheckResult` is the result of each check.
"""

import fcntl
import os
import platform
import resource
import shutil
import tempfile
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from filters.registry import PluginError, Registry
from stream_server.config.data_folder import OTHERS_MAY_WRITE
from stream_server.config.settings import Config, InvalidSetting
from stream_server.hub.group import leave_to_python, send_to_each
from stream_server.monitoring import tracing
from stream_server.runtime import listening, redis_folder
from stream_server.runtime.embedded_redis import EmbeddedRedisError, find_redis_binary
from stream_server.security import signing_keys
from stream_server.security.signing_keys import load_or_create_secret
from stream_server.security.tokens import TokenAuthority


class CheckState(Enum):
    """The outcome of one check of ``doctor``. Only ``BROKEN`` makes the command exit with 1."""

    GOOD = "good"
    ADVICE = "advice"
    BROKEN = "broken"


class CheckResult(NamedTuple):
    """The result of one check of ``doctor``, with one sentence for a person."""

    state: CheckState
    sentence: str


good, advice = partial(CheckResult, CheckState.GOOD), partial(CheckResult, CheckState.ADVICE)
broken = partial(CheckResult, CheckState.BROKEN)


def check_python() -> CheckResult:
    """Check whether Python's regular expressions find in known texts what they should."""
    # Imported here, because importing the web package takes time, and a fault of another check needs none of it.
    from stream_server.runtime import python_check  # noqa: PLC0415 - see above

    fault = python_check.find_fault()
    return broken(fault) if fault else good(f"Python {platform.python_version()}")


def check_redis_binary() -> CheckResult:
    """Check whether there is a usable Valkey or Redis, which a server without ``--redis`` needs."""
    try:
        binary = find_redis_binary()
    except EmbeddedRedisError as error:
        return broken(str(error))
    return good(f"{binary.engine} for the embedded Redis: {binary.path}")


def check_fan_out() -> CheckResult:
    """Check whether the loop that sends to the clients of a group is the one in C."""
    if send_to_each is not leave_to_python:
        return good("fan-out in C")
    return advice("fan-out in Python: a delivery takes a sixth more CPU time than in C, which needed a compiler")


def check_filters() -> CheckResult:
    """Check that all installed filters can be loaded. The result gives their names."""
    try:
        registry = Registry.from_entry_points()
        registry.all()
    except PluginError as error:
        return broken(str(error))
    return good(f"filters: {registry.summary()}")


def check_descriptors() -> CheckResult:
    """Check whether a server may open enough files. It raises its own limit to the hard limit (``ulimit -Hn``)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return good("a server may open any number of files")
    if hard < 4096:  # one process can serve more streams
        ways = "LimitNOFILE= of systemd, --ulimit nofile= of Docker, or /etc/security/limits.conf"
        return advice(f"a server may open {hard} files, so about that many streams: raise the hard limit ({ways})")
    return good(f"a server may open {hard} files")


def check_temporary_folder() -> list[CheckResult]:
    """Check whether the machine's folder for temporary files can be used. A server keeps its sockets there."""
    try:
        Path(tempfile.mkdtemp(prefix="stream-server-doctor-")).rmdir()
    except OSError as error:
        return [broken(f"the folder for temporary files cannot be used: {error.strerror}")]
    return []


def check_port(settings: Config) -> list[CheckResult]:
    """Check whether a server could listen on the address of the settings, if none answers there."""
    try:
        listening.listen_alone(settings.host, settings.port).close()
    except listening.CannotListen as error:
        return [broken(str(error))]
    return []


def check_data_folder(settings: Config, *, is_served: bool = False) -> list[CheckResult]:
    """Check whether a server could start on the data folder of the settings; ``is_served`` says that one runs on it."""
    if not settings.data_dir:
        lost = "the data are in a temporary folder and are deleted when the server stops"
        return [] if settings.redis else [good(f"no --data-dir: {lost}")]
    folder = Path(settings.data_dir).absolute()
    try:
        return _check_folder(folder, has_redis=not settings.redis, is_served=is_served)
    except OSError as error:
        return [broken(f"the data folder {folder} cannot be used: {error.strerror}: {error.filename}")]


def _check_folder(folder: Path, *, has_redis: bool, is_served: bool) -> list[CheckResult]:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not _may_use(existing):
        fault = f"{existing} cannot be read and written{_owner(existing)}"
        return [broken(f"the data folder {folder} cannot be used: {fault}")]
    found = []
    if folder.exists() and folder.stat().st_mode & OTHERS_MAY_WRITE:
        found.append(advice(f"others can write into {folder}: `chmod 700` it"))
    if has_redis:
        found += _check_redis_files(folder, is_served=is_served)
        if shutil.disk_usage(existing).free < 2**30:
            found.append(advice(f"less than 1 GiB is free for {folder}: a full disk stops all writes"))
    return [good(f"the data folder {folder} can be written"), *found]


def _check_redis_files(folder: Path, *, is_served: bool) -> list[CheckResult]:
    closed = [path for path in redis_folder.redis_files(folder) if not _may_use(path)]
    if closed:
        return [broken(f"{path} cannot be read and written{_owner(path)}") for path in closed]
    found = []
    holder = None if is_served else _lock_holder(folder / redis_folder.LOCK_FILE)
    if holder is not None:
        found.append(broken(f"the data folder {folder} is in use by another server (its Redis is process {holder})"))
    try:
        fault = redis_folder.start_fault(folder, find_redis_binary(folder=folder).engine)
    except EmbeddedRedisError:
        return found  # another check reports that there is no Redis
    return [*found, broken(fault)] if fault else found


def _lock_holder(lock: Path) -> str | None:
    """Return the process id of the Redis that holds the lock of the data folder, as text; None if it is free."""
    if not lock.exists():
        return None
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing the file ends it
        except BlockingIOError:
            return file.read().partition(" ")[0] or "?"
    return None


def _may_use(path: Path) -> bool:
    """Return whether this process may read and write a file, or open and change a folder."""
    wanted = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def _owner(path: Path) -> str:
    """Return a phrase about the owner of the file, such as ``, which belongs to root``; empty if it is this user."""
    owner = path.stat().st_uid
    return "" if owner == os.geteuid() else f": it belongs to user {owner}, and this is user {os.geteuid()}"


def check_token_key(settings: Config) -> CheckResult:
    """Check whether the key of tokens, from the settings or the data folder, is usable, and that of the bus."""
    try:
        is_kept = bool(settings.data_dir) and (Path(settings.data_dir) / "jwt.secret").exists()
        secret = "" if settings.jwt_secret else load_or_create_secret(settings.data_dir if is_kept else "")
        TokenAuthority(settings, secret)
        if settings.bus_secret:
            signing_keys.derive_bus_secret(settings)
    except InvalidSetting as error:
        return broken(str(error))
    except OSError as error:
        return broken(f"the key of tokens cannot be read: {error.strerror}: {error.filename}")
    if settings.jwt_secret or settings.jwt_algorithm != "HS256":
        return good(f"the key of {settings.jwt_algorithm} tokens is usable")
    if settings.data_dir:
        return good("the key of tokens is " + ("kept in the data folder" if is_kept else "created at the first start"))
    ends = "each start makes another key of tokens, so no token outlives the server"
    return (advice if settings.redis else good)(f"no jwt_secret and no --data-dir: {ends}")


def check_traces(settings: Config) -> list[CheckResult]:
    """Check whether traces can be sent, if the settings ask for them."""
    try:
        tracing.check_settings(settings)
    except InvalidSetting as error:
        return [broken(str(error))]
    return []
