"""The output of commands on a terminal, which a pipe does not get."""

import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.command_line import COMMAND, ROOT, run, running
from tests.end_to_end.server import Server, environment
from tests.posts import post
from tests.waiting import PATIENCE

pytestmark = pytest.mark.extended


class Screen:
    """A program on a terminal of its own. ``text`` is all that it has written, with its escape sequences."""

    def __init__(self, command: list[str]) -> None:
        self._end, terminal = pty.openpty()
        variables = environment() | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal
        )
        os.close(terminal)
        os.set_blocking(self._end, False)
        self.text = ""

    def until(self, check: Callable[[str], object]) -> None:
        """Wait until ``check`` is true of the text."""
        end = time.monotonic() + PATIENCE
        while not check(self.text):
            assert time.monotonic() < end, self.text[-2000:]
            assert self.process.poll() is None, self.text[-2000:]
            try:
                self.text += os.read(self._end, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.02)  # the condition is looked at above; this only paces it

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(PATIENCE)
        with suppress(OSError):
            self.text += os.read(self._end, 65536).decode(errors="replace")
        return code

    def close(self) -> None:
        os.close(self._end)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)


@contextmanager
def screen(*command: str) -> Iterator[Screen]:
    shown = Screen(list(command))
    try:
        yield shown
    finally:
        shown.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("terminal")) as started:
        yield started


def test_tail_marks_matches_and_shows_the_rate(server: Server, tmp_path: Path) -> None:
    """In a pipe the same stream has no escape sequence, and its events no `matched`."""
    made = run("token", "--data-dir", server.data, "--user", "ada", "--create", env=environment())
    jwt = made.out.strip()
    command = (*COMMAND, "tail", "--url", server.address, "--token", jwt, "--track", "tea", "--since", "-5m")
    with (
        screen(*command) as shown,
        running(*command, folder=tmp_path / "pipe", env=environment()) as pipe,
        running(*command, "--json", folder=tmp_path / "json", env=environment()) as lines,
    ):
        post(server, jwt, "a cup of tea")
        shown.until(lambda text: "tea" in text and "1 events" in text)
        pipe.until(lambda: "tea" in pipe.out)
        lines.until(lambda: "tea" in lines.out)
        assert (shown.interrupt(), pipe.interrupt(), lines.interrupt()) == (130, 130, 130)
    assert re.search(r"\x1b\[1;30;43mtea\x1b\[0m", shown.text), repr(shown.text)
    assert re.search(r"/s · 1 events · age p50 [\d,]+ ms", shown.text)
    assert re.fullmatch(r"\d\d:\d\d:\d\d @ada a cup of tea\n", pipe.out)
    assert '"matched"' not in lines.out
    assert "Traceback" not in shown.text + pipe.err + lines.err


def test_stats_looks_again_until_ctrl_c(server: Server) -> None:
    run("token", "--data-dir", server.data, "--user", "ada", "--create", env=environment())
    with screen(*COMMAND, "stats", "--data-dir", str(server.data), "--user", "ada", "--every", "0.2") as shown:
        shown.until(lambda text: text.count("ready") >= 3)
        assert shown.interrupt() == 130
    assert "Traceback" not in shown.text
    assert "redis" in shown.text


def test_a_server_that_nobody_named_is_told_to_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that takes the output hears nothing of it."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))  # no other server is found there
    with Server(tmp_path / "own") as own:
        assert run("token", "--user", "ada", "--create", env=environment()).err == ""
        with screen(*COMMAND, "tail", "--user", "ada", "--track", "x") as shown:
            shown.until(lambda text: f"server: {own.address} (process " in text)
        with screen(*COMMAND, "tail", "--user", "ada", "--track", "x", "--data-dir", str(own.data)) as named:
            named.until(lambda text: "0 events" in text or "connected" in text)
        assert "server: " not in named.text
