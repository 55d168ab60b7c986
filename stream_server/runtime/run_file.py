"""The run file: ``server.json`` in the data folder of a running server, with the URLs of the server and its Redis.

The other commands read it, see ``commands/server_access.py``. Only its owner may read it, because the URL of Redis may
hold a password. The server also writes the result of each reload into it, for the command ``reload``.
"""

import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from stream_server.config import data_folder
from stream_server.config.reload import ReloadOutcome
from stream_server.config.settings import Config

logger = logging.getLogger(__name__)

RUN_FILE_NAME = "server.json"


class RunFile(msgspec.Struct, frozen=True):
    """The content of the run file ``server.json``.

    Attributes:
        redis: URL of the server's Redis.
        url: HTTP address of the server.
        pid: Id of the server process to send signals to; with several workers, of the supervisor.
        started_at: Start time of that process. It differs for a later process that gets the same ``pid``.
        reloads: Number of reloads since the start.
        messages: Sentences about the last reload.
        refused: Whether the last reload changed nothing because the settings were invalid.
    """

    redis: str
    url: str
    pid: int = 0
    started_at: str = ""
    reloads: int = 0
    messages: list[str] = []
    refused: bool = False


@contextmanager
def kept_run_file(config: Config) -> Iterator[Callable[[ReloadOutcome], None]]:
    """Keep the run file in the data folder while the block runs. Without a data folder there is no run file.

    Yields a function that reports the outcome of a reload: it writes the outcome to the log and the run file.
    """
    pid = os.getpid()
    content = RunFile(config.redis, server_url(config), pid, process_started_at(pid))

    def report(outcome: ReloadOutcome) -> None:
        nonlocal content
        for sentence in outcome.sentences():
            logger.log(logging.WARNING if outcome.refused or outcome.needs_restart else logging.INFO, sentence)
        content = msgspec.structs.replace(
            content, reloads=content.reloads + 1, messages=outcome.sentences(), refused=bool(outcome.refused)
        )
        if config.data_dir:
            try:
                write(config.data_dir, content)
            except OSError as error:  # a full disk does not stop the server
                logger.warning("cannot write the run file: %s", error.strerror)

    if config.data_dir:
        write(config.data_dir, content)
    try:
        yield report
    finally:
        if config.data_dir:
            _path(config.data_dir).unlink(missing_ok=True)


def server_url(config: Config) -> str:
    """Return the URL at which a server with these settings listens; an IPv6 address stands in brackets."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{config.port}"


def read(data_dir: str) -> RunFile | None:
    """Return the run file in the data folder; None if it is absent or unreadable."""
    try:
        return msgspec.json.decode(_path(data_dir).expanduser().read_bytes(), type=RunFile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write(data_dir: str, run_file: RunFile) -> None:
    """Write the run file into the data folder. A reader sees the old or the new file, never a part."""
    path = _path(data_dir)
    data_folder.make_private(path.parent)
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_bytes(msgspec.json.encode(run_file))
    partial.replace(path)


def process_started_at(pid: int) -> str:
    """Return the start time of a process as text to compare for equality; empty if the process does not exist.

    The system reuses process ids. The same id with another start time is another process.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]  # `starttime` of proc(5)
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _read_ps(pid, "lstart")


def process_command_line(pid: int) -> str:
    """Return the command line of the process; empty if the process does not exist."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _read_ps(pid, "command")


def _read_ps(pid: int, column: str) -> str:
    """Return the value of one column of ``ps`` for the process, on systems without ``/proc``."""
    command = ["ps", "-o", f"{column}=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words, a number
    return answer.stdout.strip()


def _path(data_dir: str) -> Path:
    return Path(data_dir) / RUN_FILE_NAME
