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

from stream_server.config.reload import ReloadOutcome
from stream_server.config.settings import Config

logger = logging.getLogger(__name__)

FILE_NAME = "server.json"


class RunFile(msgspec.Struct, frozen=True):
    """The content of the run file.

    Attributes:
        redis: URL of the server's Redis.
        url: URL of the server.
        pid: Process that takes signals; with several workers, the supervisor.
        started_at: The result of :func:`process_started_at` for ``pid``. It tells a later process with the same
            number apart.
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
    """Keep the run file of this process in the data folder, if there is one, until the block ends.

    Yields the function that reports a reload: it writes the result to the log and into the run file.
    """
    pid = os.getpid()
    content = RunFile(config.redis, server_url(config), pid, process_started_at(pid))

    def report(outcome: ReloadOutcome) -> None:
        """Log the result of a reload and write it into the run file."""
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
            remove(config.data_dir)


def server_url(config: Config) -> str:
    """Return the URL at which a server with these settings listens; an IPv6 address stands in brackets."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{config.port}"


def read(data_dir: str) -> RunFile | None:
    """Return the run file in the data folder; None if it is absent or unreadable."""
    try:
        return msgspec.json.decode((Path(data_dir).expanduser() / FILE_NAME).read_bytes(), type=RunFile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write(data_dir: str, run_file: RunFile) -> None:
    """Write the run file into the data folder; it replaces the one before in one step."""
    path = _path(data_dir)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # only the embedded Redis creates the folder itself
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_bytes(msgspec.json.encode(run_file))
    partial.replace(path)


def remove(data_dir: str) -> None:
    """Remove the run file when the server stops."""
    _path(data_dir).unlink(missing_ok=True)


def process_started_at(pid: int) -> str:
    """Return when the process started, in the system's own format; empty if no such process exists.

    The system reuses process ids. The same id with another start time is another process.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]  # `starttime` of proc(5)
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _read_ps(pid, "lstart")


def process_command_line(pid: int) -> str:
    """Return the command line of the process; empty if no such process exists."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _read_ps(pid, "command")


def _read_ps(pid: int, column: str) -> str:
    """Return one column of ``ps`` for the process, on systems without ``/proc``."""
    command = ["ps", "-o", f"{column}=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words, a number
    return answer.stdout.strip()


def _path(data_dir: str) -> Path:
    """Return the path of the run file in the data folder."""
    return Path(data_dir) / FILE_NAME
