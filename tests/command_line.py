"""The command as a person types it: what it prints, and its exit code."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple
from unittest.mock import patch

from click.testing import CliRunner

from stream_server.cli import cli
from tests.preloaded.launcher import AnyProcess, start_module
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "stream_server")


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@cache
def _temporary_folder() -> str:
    """Return a folder for temporary files, in which no command finds the servers of other tests, or of a developer."""
    folder = tempfile.mkdtemp(prefix="sst-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def clean_environment(**more: str) -> dict[str, str]:
    """Return this environment without settings of the server, and with ``more``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_SERVER_")}
    return kept | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200", "TMPDIR": _temporary_folder()} | more


def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Outcome:
    """Run ``stream-server`` to its end, for `PATIENCE` at most. Fails if it prints a traceback."""
    with TemporaryFile() as out, TemporaryFile() as err:
        process = _start([*COMMAND, *map(str, arguments)], env or clean_environment(), out, err)
        try:
            code = process.wait(PATIENCE)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        printed, errors = _text(out), _text(err)
    assert "Traceback" not in errors, errors
    return Outcome(code, printed, errors)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def invoke(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Outcome:
    """Run the command inside this process, which saves a second. For commands that start no server."""
    own = {name: None for name in os.environ if name.startswith("STREAM_SERVER_")}
    with patch.object(tempfile, "tempdir", _temporary_folder()):
        result = CliRunner(env={**own, **(env or {})}).invoke(
            cli, [str(one) for one in arguments], prog_name="stream-server"
        )
    assert isinstance(result.exception, SystemExit | None), result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


class Running:
    """A program that runs until it is interrupted. ``out`` and ``err`` are what it has printed so far."""

    def __init__(self, command: list[str], folder: Path, env: Mapping[str, str], cwd: Path = ROOT) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = (folder / "out", folder / "err")
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self.process = _start(command, env, out, err, cwd)

    @property
    def out(self) -> str:
        return self._files[0].read_text(errors="replace")

    @property
    def err(self) -> str:
        return self._files[1].read_text(errors="replace")

    def until(self, check: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait until ``check`` is true. Fails with the output if the program ends before that."""
        end = time.monotonic() + seconds
        while not check():
            alive = self.process.poll() is None
            assert alive, f"it ended with {self.process.returncode}: {self.out[-500:]} {self.err[-2000:]}"
            assert time.monotonic() < end, f"not in time: {self.out[-500:]} {self.err[-2000:]}"
            time.sleep(0.02)  # the condition is looked at above; this only paces it

    def interrupt(self) -> int:
        """Send SIGINT and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


@contextmanager
def running(*arguments: str | Path, folder: Path, env: Mapping[str, str], cwd: Path = ROOT) -> Iterator[Running]:
    """Run a program in the folder ``cwd`` until the end of the block. ``folder`` gets what it prints."""
    program = Running([str(argument) for argument in arguments], folder, env, cwd)
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.process.kill()
        program.process.wait(PATIENCE)


def _start(command: list[str], env: Mapping[str, str], out: IO[bytes], err: IO[bytes], cwd: Path = ROOT) -> AnyProcess:
    if tuple(command[: len(COMMAND)]) == COMMAND:
        return start_module(command[2:], env, out, err)
    return subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
