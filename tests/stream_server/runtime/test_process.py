"""The settings that a process with workers gives to its supervisor, and the signals at the end of a process."""

import asyncio
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest

from stream_server.config.reload import SettingsReloader
from stream_server.runtime import process, supervisor
from stream_server.runtime.listening import Listeners
from tests.stream_server import tokens
from tests.tiers import quick


class RecordingSupervisor:
    stop_seconds = 0.0

    def __init__(self, *_: object, stop_seconds: float, **__: object) -> None:
        RecordingSupervisor.stop_seconds = stop_seconds

    async def run(self) -> int:
        return 0


@pytest.mark.parametrize(("shutdown_seconds", "stop_seconds"), [(4.0, 4.6), (20.0, 20.6)])
async def test_the_supervisor_waits_for_the_shutdown_time_of_its_workers(
    monkeypatch: pytest.MonkeyPatch, shutdown_seconds: float, stop_seconds: float
) -> None:
    monkeypatch.setattr(supervisor, "Supervisor", RecordingSupervisor)

    async def nothing() -> None:
        await asyncio.Event().wait()

    config = tokens.config(workers=2, shutdown_seconds=shutdown_seconds)
    flags: dict[str, Any] = {}
    reloader = SettingsReloader(config, lambda: config)
    with Listeners([socket.socket()]) as reserved:
        assert await process._run_supervisor(config, flags, reserved, None, nothing, reloader) == 0
    asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
    assert RecordingSupervisor.stop_seconds == stop_seconds


ENDINGS = """
import asyncio, signal, sys
import uvloop
from stream_server.runtime import process

async def handled():
    process.StopRequest()
    return 0

signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
for _ in range(int(sys.argv[1])):
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(process._ignore_signals_after(handled()))
    except asyncio.CancelledError:
        pass  # the signal came before the end
"""
"""A process that ends many times, each time as a server's process does."""


def test_no_signal_ends_a_process_that_already_ends() -> None:
    """Between the handler of a signal and its being ignored there is no moment in which the signal is deadly."""
    endings = 60 if quick() else 300
    with subprocess.Popen([sys.executable, "-c", ENDINGS, str(endings)], stdout=subprocess.PIPE) as ending:
        assert ending.stdout is not None
        assert ending.stdout.readline() == b"ready\n"
        sent = 0
        while ending.poll() is None:
            ending.send_signal(signal.SIGTERM)
            sent += 1
    assert ending.returncode == 0
    assert sent > endings
