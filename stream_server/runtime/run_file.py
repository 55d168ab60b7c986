"""The run file: ``server.json`` in the data folder of a running server, with the URLs of the server and its Redis.

The other commands read it, see ``commands/server_access.py``. Only its owner may read it, because the URL of Redis may
hold a password.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from stream_server.config.data_folder import make_private, write_private
from stream_server.config.settings import Config, InvalidSetting

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
        redis: URL of the server's Redis.
        url: HTTP address of the server.
        pid: Id of the server process to send signals to; with several workers, of the supervisor.
        settings: Values of the :data:`SHARED_SETTINGS`.
    """

    redis: str
    url: str
    pid: int = 0
    settings: dict[str, Any] = {}


@contextmanager
def kept_run_file(config: Config, *, is_needed: bool = True) -> Iterator[None]:
    """Keep the run file in the data folder while the block runs. Without a data folder there is no run file.

    Unless it is needed, as for an embedded Redis, the server also runs without it: its other data are elsewhere.
    """
    if not config.data_dir:
        yield
        return
    settings = {name: getattr(config, name) for name in SHARED_SETTINGS}
    try:
        write(config.data_dir, RunFile(config.redis, server_url(config), os.getpid(), settings))
    except (OSError, InvalidSetting) as error:
        if is_needed:
            raise
        logger.warning("commands cannot find this server by its data folder, which cannot be used: %s", error)
    try:
        yield
    finally:
        with suppress(OSError):
            _path(config.data_dir).unlink(missing_ok=True)


def server_url(config: Config) -> str:
    """Return the URL at which a server with these settings listens; an IPv6 address stands in brackets."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{config.port}"


def read(data_dir: str) -> RunFile | None:
    """Return the run file in the data folder; None if it is absent or unreadable."""
    try:
        return msgspec.json.decode(_path(data_dir).read_bytes(), type=RunFile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write(data_dir: str, run_file: RunFile) -> None:
    """Write the run file into the data folder. A reader sees the old or the new file, never a part."""
    path = _path(data_dir)
    make_private(path.parent)
    write_private(path, msgspec.json.encode(run_file))


def _path(data_dir: str) -> Path:
    return Path(data_dir) / RUN_FILE_NAME
