"""Running one server process, or a supervisor of several worker processes.

With one worker, this process serves the clients. With more, this process starts that many copies of itself on one port,
and itself runs only the supervisor and the embedded Redis.
"""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from filters.registry import installed_registry
from stream_server.app import FEED_TASK, JOBS_TASK, serve_application
from stream_server.config.config import load_again, worker_environment
from stream_server.config.reload import SettingsReloader
from stream_server.config.settings import Config, InvalidSetting
from stream_server.demo import walkthrough
from stream_server.monitoring import tracing
from stream_server.monitoring.worker_sockets import SOCKET_NAME_BYTES, WorkerSockets
from stream_server.runtime import listening, logs, run_file, supervisor
from stream_server.runtime.child_processes import SERVE
from stream_server.runtime.embedded_redis import EmbeddedRedis
from stream_server.runtime.listening import Listeners, TcpKeepalive
from stream_server.runtime.memory import total_memory_bytes
from stream_server.runtime.private_folder import PrivateFolder
from stream_server.security import signing_keys, tokens
from stream_server.web.limits import connections

logger = logging.getLogger(__name__)

PrintText = Callable[[str], None]


class StopRequest:
    """Handles SIGTERM and SIGINT: the first signal cancels a server that is starting, or asks a running one to stop.

    Create the object before a child process starts, because an unhandled signal would end this process and leave the
    child running. Later signals have no effect: the stop has a time limit, and a faster stop would lose the goodbyes.
    """

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self._starting_task = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._request)

    @property
    def is_requested(self) -> bool:
        """Whether SIGTERM or SIGINT arrived. Check it after the start: a library may have swallowed a cancellation."""
        return self._requested.is_set()

    def _request(self) -> None:
        if self._starting_task is not None and not self._requested.is_set():
            self._starting_task.cancel()
        self._requested.set()

    async def wait(self) -> None:
        """Wait for SIGTERM or SIGINT. Call this after the start: before, a signal cancels the task that starts it."""
        self._starting_task = None
        await self._requested.wait()


class WorkerOptions(NamedTuple):
    """The options that the supervisor passes to a worker.

    Attributes:
        supervisor_fd: Descriptor of the worker's socket to the supervisor.
        listening_fds: Descriptors of the listening sockets; empty if the worker binds its own.
        slot: Number of the worker, from 1.
        sockets: Folder of the sockets by which the workers ask each other; None if they cannot.
    """

    supervisor_fd: int
    listening_fds: tuple[int, ...]
    slot: int = 1
    sockets: Path | None = None


def run_server(
    config: Config,
    flags: Mapping[str, Any],
    *,
    with_demo: bool,
    print_text: PrintText,
    worker: WorkerOptions | None = None,
) -> int:
    """Run the server until SIGTERM or SIGINT; return the exit code.

    Args:
        config: The settings, loaded with ``flags``.
        flags: The command-line flags, with which a reload loads the settings again.
        print_text: Prints text for the person at the terminal, first the address of the server.
        worker: The options from the supervisor if this process is one of several workers, else None.
    """
    number = worker.slot if worker is not None else 1 if config.workers == 1 else None  # None is a supervisor
    logs.configure(config.log_level, sys.stderr, number)
    connections.raise_open_files_limit()
    # A collection of garbage pauses every stream. One of young objects visits up to 50,000 of them, which takes a few
    # milliseconds. Those of older objects are rare, because streams leave no cycles: fifty million objects must be made
    # and kept since the last one.
    gc.set_threshold(50_000, 1_000, 50)
    # Another thread of Python code keeps the event loop waiting for so long at most, each time that the loop wakes up.
    sys.setswitchinterval(0.0001)
    if worker is not None:
        run = _run_worker(config, flags, worker)
    else:
        run = _run_first_process(config, flags, with_demo=with_demo, print_text=print_text)
    with suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_ignore_signals_after(run))
    return 0  # a signal cancelled the start, see StopRequest


async def _ignore_signals_after(run: Coroutine[Any, Any, int]) -> int:
    """Await ``run`` and return its exit code. Then ignore signals: one would end the process with another exit code.

    The loop keeps its handlers, because removing one would make the signal deadly for a moment. uvloop leaves the
    signals alone when it closes.
    """
    try:
        return await run
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


async def _run_first_process(
    config: Config, flags: Mapping[str, Any], *, with_demo: bool, print_text: PrintText
) -> int:
    """Run the process that the person started: the only server process, or the supervisor. Return the exit code.

    The function checks the filters, the settings of traces, the port and the data folder first, and then the signing
    key, so that a fault of these is found before Redis runs. A data folder with data that this version cannot read
    stays as it was, so the key that is made there comes after its check.
    """
    stop_request, reloader = StopRequest(), SettingsReloader(config, partial(load_again, flags))
    installed_registry()
    tracing.check_settings(config)
    several = config.workers > 1
    listeners = (
        listening.reserve_port(config.host, config.port) if several
        else listening.listen_alone(config.host, config.port, _keepalive(config))
    )  # fmt: skip
    async with _checked_redis(config, print_text) as embedded:
        secret = signing_keys.signing_secret(config)
        made_secret = "" if config.jwt_secret or config.data_dir else secret
        authority = tokens.TokenAuthority(config, secret)
        if with_demo and not authority.can_issue:
            raise InvalidSetting("--demo signs tokens, for which a public key or a key set does not suffice")
        bus_secret = signing_keys.derive_bus_secret(config, secret)
        config = replace(config, port=listeners.port, jwt_secret=secret, bus_secret=bus_secret)
        if embedded is not None:
            await embedded.launch()
            config = replace(config, redis=embedded.url)
        with run_file.kept_run_file(config, is_needed=embedded is not None, made_secret=made_secret):
            is_temporary = embedded is not None and not config.data_dir
            announce = partial(
                _announce_address, config, is_temporary=is_temporary, with_demo=with_demo, print_text=print_text
            )
            if several:
                if stop_request.is_requested:  # the supervisor has signal handlers of its own and would never learn it
                    return 0
                return await _run_supervisor(config, flags, listeners, embedded, announce, reloader)
            async with serve_application(config, lambda: listeners) as app:
                services = app[FEED_TASK], app[JOBS_TASK], reloader.run(config)
                return await _wait_until_stopped(stop_request, *services, _wait_redis_exit(embedded), announce())


def _keepalive(config: Config) -> TcpKeepalive:
    """Return when the kernel probes silent clients (TCP keep-alive), by the settings for heartbeats and writes."""
    return TcpKeepalive.of_timeouts(config.heartbeat_seconds, config.write_timeout_seconds)


async def _run_supervisor(
    config: Config,
    flags: Mapping[str, Any],
    reserved: Listeners,
    embedded: EmbeddedRedis | None,
    announce_address: Callable[[], Coroutine[Any, Any, None]],
    reloader: SettingsReloader,
) -> int:
    """Run the supervisor and its workers until they stop. Return the exit code: 1 if the embedded Redis ended first."""
    private = PrivateFolder(SOCKET_NAME_BYTES)
    workers = supervisor.Supervisor(
        SERVE,
        worker_environment(config, flags),
        config.workers,
        # With the default 4 s for goodbyes, this margin and a moment for Redis, everything ends within 5 s even if a
        # worker is frozen.
        stop_seconds=config.shutdown_seconds + 0.6,
        report=logger.warning,
        listeners=() if listening.WORKERS_BIND_SOCKETS else reserved.sockets,
        slot_options=lambda slot: ("--slot", str(slot), "--sockets", str(private.path)),
    )

    def reload_workers() -> None:
        workers.reload_workers(worker_environment(config, flags))

    side_tasks = [
        asyncio.create_task(announce_address(), name="announce address"),
        asyncio.create_task(_stop_without_redis(embedded, workers), name="redis"),
        asyncio.create_task(reloader.run(config, on_reload=reload_workers), name="reload"),
    ]
    try:
        code = await workers.run()
    finally:
        for task in side_tasks:
            task.cancel()
        results = await asyncio.gather(*side_tasks, return_exceptions=True)
        private.remove()
    return code or int(results[1] is True)


async def _stop_without_redis(embedded: EmbeddedRedis | None, workers: supervisor.Supervisor) -> bool:
    """Wait until the embedded Redis ends by itself. Then stop the workers, which need Redis, and return True."""
    await _wait_redis_exit(embedded)
    workers.stop()
    return True


@asynccontextmanager
async def _checked_redis(config: Config, print_text: PrintText) -> AsyncIterator[EmbeddedRedis | None]:
    """Yield the embedded Redis, which does not run yet, and stop it after the block. Yield None if a URL names a Redis.

    Without a data folder, the data are deleted at the end, and the person hears so.
    """
    if config.redis:
        yield None
        return
    max_bytes = config.redis_memory_bytes or total_memory_bytes() // 2
    folder = Path(config.data_dir) if config.data_dir else None
    embedded = await EmbeddedRedis.checked(folder, extra=("--maxmemory", str(max_bytes)))
    try:
        yield embedded
    finally:
        await embedded.stop()
        if folder is None and embedded.redis_pid:
            with suppress(OSError):  # the terminal may be gone
                print_text("The data of this server are deleted. To keep them, start it with --data-dir ./data")


async def _run_worker(config: Config, flags: Mapping[str, Any], worker: WorkerOptions) -> int:
    """Run this process as one of several workers, until a signal or the supervisor's end. Return the exit code."""
    stop_request, reloader = StopRequest(), SettingsReloader(config, partial(load_again, flags))
    listen = partial(listening.listen_as_worker, config.host, config.port, worker.listening_fds, _keepalive(config))
    heartbeat = supervisor.WorkerHeartbeat(worker.supervisor_fd)
    sockets = WorkerSockets(worker.sockets, worker.slot, config.workers)
    async with AsyncExitStack() as stack:
        with heartbeat.exit_if_orphaned():
            app = await stack.enter_async_context(serve_application(config, listen, sockets))
        services = app[FEED_TASK], app[JOBS_TASK], reloader.run(config, is_worker=True)
        code = await _wait_until_stopped(stop_request, *services, heartbeat.run())
    if heartbeat.is_orphaned and worker.sockets is not None:
        with suppress(OSError):  # another worker still has its socket there, and removes the folder
            worker.sockets.rmdir()
    return code


async def _wait_until_stopped(stop_request: StopRequest, *services: Awaitable[Any]) -> int:
    """Run ``services`` until SIGTERM or SIGINT and return 0. If a service ends before that, stop all and return 1."""
    requested = asyncio.ensure_future(stop_request.wait())
    tasks: list[asyncio.Future[Any]] = [requested, *map(asyncio.ensure_future, services)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if requested in done:
        return 0
    for task in done:
        if task.exception() is not None:
            logger.error("the server stops because a task failed", exc_info=task.exception())
    return 1


async def _wait_redis_exit(embedded: EmbeddedRedis | None) -> None:
    """Wait until the embedded Redis ends by itself, and log what it said. Without an embedded Redis, never return."""
    if embedded is None:
        await asyncio.Event().wait()
    else:
        code = await embedded.wait_exit()
        logger.error(embedded.with_log(f"the embedded Redis ended by itself with code {code}"))


async def _announce_address(config: Config, *, is_temporary: bool, with_demo: bool, print_text: PrintText) -> None:
    """Print the URLs and the filters when the server accepts connections, then run the demo if ``with_demo``.

    With ``is_temporary``, say that the data are deleted at the end.
    The coroutine never returns, because a server process stops when one of its services ends.
    """
    address = run_file.server_url(config)
    await _wait_until_accepting(config.host, config.port)
    # One write: a terminal that is closed between two writes would end the server with an error.
    deleted = "\nThe data are deleted when the server stops. To keep them, start it with --data-dir ./data"
    filters = f"filters: {installed_registry().summary()}; documentation: {address}/docs"
    print_text(f"stream-server listening on {address}\n{filters}{deleted if is_temporary else ''}")
    if with_demo:
        await walkthrough.run_demo(config, address, print_text)
    await asyncio.Event().wait()


async def _wait_until_accepting(host: str, port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
