"""The settings that a process with workers gives to its supervisor."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from stream_server.config.settings import Config
from stream_server.runtime import process, supervisor
from tests.stream_server import tokens


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

    async def nothing(*_: Callable[[Config], None]) -> None:
        await asyncio.Event().wait()

    config = tokens.config(workers=2, shutdown_seconds=shutdown_seconds)
    flags: dict[str, Any] = {}
    with socket.socket() as reserved:
        assert await process._run_supervisor(config, flags, reserved, None, nothing, nothing) == 0
    assert RecordingSupervisor.stop_seconds == stop_seconds
