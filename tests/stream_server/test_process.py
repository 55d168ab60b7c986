"""What a process that owns workers hands them over to."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from stream_server.config.settings import Config
from stream_server.runtime import process, supervisor
from tests.stream_server import tokens


class Told:
    """A supervisor of nobody, which keeps what it was told."""

    stop_seconds = 0.0

    def __init__(self, *_: object, stop_seconds: float, **__: object) -> None:
        Told.stop_seconds = stop_seconds

    async def run(self) -> int:
        return 0


@pytest.mark.parametrize(("shutdown_seconds", "stop_seconds"), [(4.0, 4.6), (20.0, 20.6)])
async def test_a_worker_has_its_time_for_goodbyes_before_it_is_killed(
    monkeypatch: pytest.MonkeyPatch, shutdown_seconds: float, stop_seconds: float
) -> None:
    """However long that is set to, and some room."""
    monkeypatch.setattr(supervisor, "Supervisor", Told)

    async def nothing(*_: Callable[[Config], None]) -> None:
        await asyncio.Event().wait()

    config = tokens.config(workers=2, shutdown_seconds=shutdown_seconds)
    flags: dict[str, Any] = {}
    with socket.socket() as reserved:
        assert await process._run_supervisor(config, flags, reserved, None, nothing, nothing) == 0
    assert Told.stop_seconds == stop_seconds
