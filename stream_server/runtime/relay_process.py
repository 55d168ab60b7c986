"""The process that hears Redis for all workers of a server, started by the supervisor beside them."""

import asyncio
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from stream_server.config.config import load_again
from stream_server.config.reload import ReloadOutcome, SettingsReloader
from stream_server.config.settings import Config
from stream_server.events.bus_signature import BusSignature
from stream_server.feed.link_health import LinkHealth
from stream_server.feed.relay.distribution import Distribution
from stream_server.feed.relay.hearing import Hearing
from stream_server.monitoring.host_state import RelayState
from stream_server.monitoring.process_usage import read_usage
from stream_server.monitoring.worker_sockets import RELAY_SLOT, REPORT, WorkerSockets
from stream_server.runtime import logs, supervisor
from stream_server.security import bus_key
from stream_server.store.store import Store


def run(
    config: Config, flags: Mapping[str, Any], supervisor_fd: int, listening_fd: int, sockets: Path | None
) -> int:
    """Run the relay on the unix socket ``listening_fd`` until SIGTERM or the end of the supervisor. Return 0.

    The workers ask for its figures on a socket in the folder ``sockets``, as they ask each other.
    """
    logs.configure(config.log_level, sys.stderr, RELAY_SLOT)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(config, flags, supervisor_fd, listening_fd, sockets))
    return 0


async def _run(
    config: Config, flags: Mapping[str, Any], supervisor_fd: int, listening_fd: int, sockets: Path | None
) -> None:
    reloader = SettingsReloader(config, partial(load_again, flags))
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    store = Store(config.redis, timeout_seconds=config.redis_timeout_seconds, replica_url=config.redis_read)
    distribution = Distribution(BusSignature(bus_key.to_key(config.bus_secret or os.urandom(16).hex())))
    health = LinkHealth(random.Random(), monotonic=time.monotonic)
    hearing = Hearing(store.log, distribution, health, lambda: config.canary_seconds)
    server = await loop.create_unix_server(distribution.make_link, sock=socket.socket(fileno=listening_fd))
    tasks = [
        asyncio.create_task(hearing.run(), name="relay"),
        asyncio.create_task(supervisor.WorkerHeartbeat(supervisor_fd).run(), name="heartbeat"),
        asyncio.create_task(reloader.run(partial(_apply, config), _ignore_outcome), name="reload"),
        asyncio.create_task(stopping.wait(), name="stop"),
    ]
    try:
        async with WorkerSockets(sockets, RELAY_SLOT).offered(RelayFigures(distribution, health).answer):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        distribution.end()
        server.close()
        await store.close()
    for result in results:
        if isinstance(result, Exception):
            raise result  # the supervisor starts another relay, and the log shows what was wrong


def _apply(config: Config, newer: Config) -> None:
    config.apply_reloadable(newer)
    logs.set_level(newer.log_level)


def _ignore_outcome(outcome: ReloadOutcome) -> None:
    """Do nothing: the supervisor logs a reload."""


class RelayFigures:
    """Answers the workers' questions about the relay."""

    def __init__(self, distribution: Distribution, health: LinkHealth) -> None:
        self._distribution = distribution
        self._health = health

    async def answer(self, question: str) -> bytes:
        """Answer as `Operations.answer` does. A question that the relay does not know gets an empty answer."""
        return msgspec.json.encode(self._state()) if question == REPORT else b""

    def _state(self) -> RelayState:
        made, usage = self._distribution, read_usage()
        return RelayState(
            os.getpid(), self._health.healthy.is_set(), made.links, made.entries, made.lost, made.bytes,
            made.waiting_bytes(), self._health.lag_ms(), usage.memory_bytes, round(usage.cpu_seconds, 3),
        )  # fmt: skip
