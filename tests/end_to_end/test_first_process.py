"""The server as the first process of a container, to which the kernel sends no signal that it does not handle."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stream_server.__main__ import ENDED_BY_SIGTERM
from tests.command_line import clean_environment
from tests.waiting import PATIENCE, wait_for_process

UNSHARE = ["unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "--pid", "--fork"]
"""Runs a program as the first process of a new namespace of processes."""


def can_unshare() -> bool:
    if not shutil.which("unshare"):
        return False
    return subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode == 0


def child_of(pid: int) -> int:
    """Return the process id of the only child, or 0 if there is none yet."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return int(text or 0)


@pytest.mark.skipif(not can_unshare(), reason="this system makes no namespaces of processes for this user")
def test_a_server_that_is_stopped_while_it_starts_ends(tmp_path: Path) -> None:
    command = [*UNSHARE, sys.executable, "-m", "stream_server", "serve", "--port", "0", "--data-dir", str(tmp_path)]
    with (tmp_path / "log").open("wb") as log:
        outer = subprocess.Popen(command, env=clean_environment(), stdout=log, stderr=log)

        def is_importing() -> bool:
            pid = child_of(outer.pid)
            return pid != 0 and "msgspec" in Path(f"/proc/{pid}/maps").read_text()

        try:
            wait_for_process(outer, is_importing, seconds=PATIENCE, log=(tmp_path / "log").read_text)
            os.kill(child_of(outer.pid), signal.SIGTERM)
            assert outer.wait(PATIENCE) == ENDED_BY_SIGTERM
        finally:
            if outer.poll() is None:
                os.kill(child_of(outer.pid), signal.SIGKILL)
                outer.wait()
    assert "Traceback" not in (tmp_path / "log").read_text()
