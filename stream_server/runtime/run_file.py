"""The note that a running server leaves in its data folder: where it is, which process it is, how a reload went.

The other commands read it (``commands/backstage.py``). It holds the URL of Redis, so only its owner may read it.
"""

import subprocess
from pathlib import Path

import msgspec

FILE_NAME = "server.json"


class RunFile(msgspec.Struct, frozen=True):
    """Where a running server and its Redis are.

    ``pid`` is the process that takes signals and ``born`` its :func:`process_started_at`, so that nobody else is taken for it.
    ``reloads`` counts how often it was told to reload; ``told`` is how that went the last time, a sentence a line, and
    ``refused`` says that nothing was changed.
    """

    redis: str
    address: str
    pid: int = 0
    born: str = ""
    reloads: int = 0
    told: list[str] = []
    refused: bool = False


def read(data_dir: str) -> RunFile | None:
    """The note in the data folder; None if there is none, or none that can be read."""
    try:
        return msgspec.json.decode((Path(data_dir).expanduser() / FILE_NAME).read_bytes(), type=RunFile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write(data_dir: str, run_file: RunFile) -> None:
    """Put the note into the data folder, whole, in the place of the one before."""
    path = _path(data_dir)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # with a Redis of one's own nobody has made it yet
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_bytes(msgspec.json.encode(run_file))
    partial.replace(path)


def remove(data_dir: str) -> None:
    """The server ends."""
    _path(data_dir).unlink(missing_ok=True)


def process_started_at(pid: int) -> str:
    """When the process began, in the words of the system: another one of the same number has another birth.

    Empty if there is no such process.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]  # `starttime` of proc(5)
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _read_ps(pid, "lstart")


def process_command_line(pid: int) -> str:
    """The command line of the process; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _read_ps(pid, "command")


def _read_ps(pid: int, column: str) -> str:
    """One column about a process, where there is no ``/proc``."""
    asked = ["ps", "-o", f"{column}=", "-p", str(pid)]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603 - a number and a word of ours
    return told.stdout.strip()


def _path(data_dir: str) -> Path:
    return Path(data_dir) / FILE_NAME
