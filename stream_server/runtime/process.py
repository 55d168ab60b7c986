"""Running one server process, or a supervisor of several worker processes.

With one worker, this process serves. With more, this process starts that many copies of itself on one port and owns
only Redis and them.
"""

import asyncio
import gc
import logging
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from filters.registry import installed_registry
from stream_server.app import APPLY_SETTINGS, FEED_TASK, JOBS_TASK, serve_application
from stream_server.config.config import load_again, worker_environment
from stream_server.config.reload import ReloadOutcome, SettingsReloader
from stream_server.config.settings import Config
from stream_server.demo import walkthrough
from stream_server.runtime import listening, logs, run_file, supervisor
from stream_server.runtime.embedded_redis import EmbeddedRedis
from stream_server.runtime.signals import StopRequest, ignore_signals_after
from stream_server.runtime.worker_heartbeat import WorkerHeartbeat
from stream_server.security import tokens

logger = logging.getLogger(__name__)

PrintText = Callable[[str], None]

DEMO_TOKEN_SECONDS = 86_400
"""Lifetime of the tokens that the demo prints."""

GC_THRESHOLDS = (20_000, 20, 20)
"""Thresholds of Python's garbage collector.

Reference counts free almost all objects of a server, and a full collection pauses every stream.
"""

WORKER_STOP_MARGIN_SECONDS = 0.6
"""Time in seconds that a worker may take to stop, besides its goodbyes, before the supervisor kills it.

With the default 4 s for goodbyes and a moment for Redis, everything ends within 5 s even if a worker is frozen. A
healthy worker has closed all its connections by then.
"""


class WorkerDescriptors(NamedTuple):
    """File descriptors that a worker inherits.

    Attributes:
        supervisor_fd: Socket to the supervisor.
        listening_fd: Listening socket; None if the worker binds its own.
    """

    supervisor_fd: int
    listening_fd: int | None


def run_server(
    config: Config,
    flags: Mapping[str, Any],
    *,
    with_demo: bool,
    print_text: PrintText,
    descriptors: WorkerDescriptors | None = None,
) -> int:
    """Run the server until SIGTERM or SIGINT; return the exit code.

    Args:
        config: The settings, loaded with ``flags``.
        flags: The command-line flags; a reload loads the settings with them again.
        with_demo: Whether to create the demo's content after the start.
        print_text: Prints text for the person at the terminal, the address first.
        descriptors: Given if this process is one of several workers.
    """
    logs.configure(config.log_level, sys.stderr)
    gc.set_threshold(*GC_THRESHOLDS)
    if descriptors is not None:
        run = _run_worker(config, flags, descriptors)
    else:
        run = _run_first_process(config, flags, with_demo=with_demo, print_text=print_text)
    with suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(ignore_signals_after(run))
    return 0  # a signal cancelled the start, see StopRequest


async def _run_first_process(
    config: Config, flags: Mapping[str, Any], *, with_demo: bool, print_text: PrintText
) -> int:
    """Run the process that the person started: the only server process, or the supervisor; return the exit code.

    It checks the key and the port before it starts Redis, so wrong settings fail early.
    """
    stop_request, reloader = StopRequest(), SettingsReloader(config, partial(load_again, flags))
    secret = tokens.signing_secret(config)
    tokens.TokenAuthority(config, secret)
    several = config.workers > 1
    listener = (listening.reserve_port if several else listening.listen_alone)(config.host, config.port)
    config = replace(config, port=listener.getsockname()[1], jwt_secret=secret)
    async with _embedded_redis(config) as embedded:
        config = config if embedded is None else replace(config, redis=embedded.url)
        with run_file.kept_run_file(config) as report:
            announce = partial(_announce_address, config, with_demo=with_demo, print_text=print_text)
            if several:
                if stop_request.is_requested:  # the supervisor has signal handlers of its own and would never learn it
                    return 0
                run_reloader = partial(reloader.run, report=report)
                return await _run_supervisor(config, flags, listener, embedded, announce, run_reloader)
            async with serve_application(config, lambda: listener) as app:
                services = app[FEED_TASK], app[JOBS_TASK], reloader.run(app[APPLY_SETTINGS], report)
                return await _wait_until_stopped(stop_request, *services, _wait_redis_exit(embedded), announce())


async def _run_supervisor(
    config: Config,
    flags: Mapping[str, Any],
    reserved: socket.socket,
    embedded: EmbeddedRedis | None,
    announce_address: Callable[[], Coroutine[Any, Any, None]],
    run_reloader: Callable[[Callable[[Config], None]], Coroutine[Any, Any, None]],
) -> int:
    """Run several workers on one port until they stop; return the exit code. This process serves no client itself."""
    workers = supervisor.Supervisor(
        [sys.executable, "-m", "stream_server", "serve"],
        worker_environment(config, flags),
        config.workers,
        stop_seconds=config.shutdown_seconds + WORKER_STOP_MARGIN_SECONDS,
        report=logger.warning,
        listener=None if listening.WORKERS_BIND_SOCKETS else reserved,
    )

    def apply_settings(newer: Config) -> None:
        """Take reloaded settings and make the workers reload."""
        config.apply_reloadable(newer)
        workers.reload_workers(worker_environment(config, flags))

    side_tasks = [
        asyncio.create_task(announce_address(), name="announce address"),
        asyncio.create_task(_stop_without_redis(embedded, workers), name="redis"),
        asyncio.create_task(run_reloader(apply_settings), name="reload"),
    ]
    try:
        code = await workers.run()
    finally:
        for task in side_tasks:
            task.cancel()
        results = await asyncio.gather(*side_tasks, return_exceptions=True)
    return code or int(results[1] is True)


async def _stop_without_redis(embedded: EmbeddedRedis | None, workers: supervisor.Supervisor) -> bool:
    """Stop the workers when the embedded Redis ends by itself, then return True."""
    await _wait_redis_exit(embedded)
    workers.stop()
    return True


@asynccontextmanager
async def _embedded_redis(config: Config) -> AsyncIterator[EmbeddedRedis | None]:
    """Run the embedded Redis while the block runs and yield it; yield None if the settings name a Redis."""
    if config.redis:
        yield None
        return
    embedded = await EmbeddedRedis.start(Path(config.data_dir) if config.data_dir else None)
    try:
        yield embedded
    finally:
        await embedded.stop()


async def _run_worker(config: Config, flags: Mapping[str, Any], descriptors: WorkerDescriptors) -> int:
    """Run one of several workers; return the exit code. It stops when its socket to the supervisor closes."""
    stop_request, reloader = StopRequest(), SettingsReloader(config, partial(load_again, flags))
    listen = partial(listening.listen_as_worker, config.host, config.port, descriptors.listening_fd)
    heartbeat = WorkerHeartbeat.from_fd(descriptors.supervisor_fd)
    async with AsyncExitStack() as stack:
        with heartbeat.exit_if_orphaned():
            app = await stack.enter_async_context(serve_application(config, listen))
        services = app[FEED_TASK], app[JOBS_TASK], reloader.run(app[APPLY_SETTINGS], _log_worker_reload)
        return await _wait_until_stopped(stop_request, *services, heartbeat.run())


async def _wait_until_stopped(stop_request: StopRequest, *services: Awaitable[Any]) -> int:
    """Wait for a stop request, then return 0. Return 1 if one of ``services`` ends first, which is a failure."""
    requested = asyncio.ensure_future(stop_request.wait())
    tasks: list[asyncio.Future[Any]] = [requested, *map(asyncio.ensure_future, services)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return 0 if requested in done else _exit_code(done)


def _exit_code(done: set[asyncio.Future[Any]]) -> int:
    """Log why the server stops, and return 1."""
    for task in done:
        if task.exception() is not None:
            logger.error("the server stops because a task failed", exc_info=task.exception())
    return 1


async def _wait_redis_exit(embedded: EmbeddedRedis | None) -> None:
    """Wait until the embedded Redis ends by itself, and log that. Never return without an embedded Redis."""
    if embedded is None:
        await asyncio.Event().wait()
    else:
        code = await embedded.wait_exit()
        logger.error("the embedded Redis ended by itself with code %s", code)


async def _announce_address(config: Config, *, with_demo: bool, print_text: PrintText) -> None:
    """Print the server's URL and its filters once it accepts connections, and run the demo if wanted. Never return."""
    address = run_file.server_url(config)
    await _wait_until_accepting(config.host, config.port)
    # One write: a terminal that is closed between two writes would end the server with an error.
    print_text(f"stream-server listening on {address}\nfilters: {installed_registry().summary()}")
    if with_demo:
        verifier = tokens.TokenAuthority(config, config.jwt_secret)

        def mint(user_id: str, scopes: frozenset[str]) -> str:
            """Return a token for the demo."""
            return verifier.issue(user_id, scopes, DEMO_TOKEN_SECONDS, time.time())[0]

        await walkthrough.run_demo(address, mint, print_text)
    await asyncio.Event().wait()


async def _wait_until_accepting(host: str, port: int) -> None:
    """Wait until a process accepts connections at the address."""
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return


def _log_worker_reload(outcome: ReloadOutcome) -> None:
    """Log a reload only if this worker refused the settings; the supervisor logs what changed."""
    if outcome.refused:
        logger.warning("a worker could not reload the settings of its supervisor: %s", outcome.refused)
