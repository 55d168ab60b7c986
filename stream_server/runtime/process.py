"""One server process, or a supervisor of several: what it starts, what it waits for, how it ends.

With one worker this process serves. With more it starts that many of itself on the same port, each of
which serves, and owns only Redis and them.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvloop

from stream_server.app import APPLY_SETTINGS, FEED_TASK, JOBS_TASK, serve_application
from stream_server.config.config import load_again, worker_environment
from stream_server.config.reload import ReloadOutcome, SettingsReloader
from stream_server.config.settings import Config
from stream_server.demo import walkthrough
from stream_server.runtime import logs, run_file, supervisor
from stream_server.runtime.embedded_redis import EmbeddedRedis
from stream_server.runtime.run_file import RunFile
from stream_server.security import tokens

logger = logging.getLogger(__name__)

PrintText = Callable[[str], None]

DEMO_TOKEN_SECONDS = 86_400
"""What the demo prints is pasted for a day."""

GC_THRESHOLDS = (20_000, 20, 20)
"""Almost all of what a server makes dies by its reference count; a full collection stops every stream for it."""


WORKER_STOP_MARGIN_SECONDS = 0.6
"""What a worker may take to end beside its goodbyes, before it is killed: with these 4 s, and for Redis a moment more,
everything is gone within 5 s also if one is frozen. It has closed all its connections by then, or never will."""


class WorkerDescriptors(NamedTuple):
    """File descriptors of a worker: its line to the supervisor, and the socket if it inherits one."""

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
    """Run until SIGTERM or SIGINT; gives the exit code.

    ``config`` was made with these ``flags``, and is made anew with them at SIGHUP. ``print_text`` gets what a person is
    to see, first of all the address. ``descriptors`` is there if this process is one of several workers.
    """
    logs.configure(config.log_level, sys.stderr)
    gc.set_threshold(*GC_THRESHOLDS)
    with suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if descriptors is not None:
            return runner.run(_ignore_signals_after(_run_worker(config, flags, descriptors)))
        return runner.run(
            _ignore_signals_after(_run_first_process(config, flags, with_demo=with_demo, print_text=print_text))
        )
    return 0  # it was told to end while it started, see Ending


async def _ignore_signals_after(run: Coroutine[Any, Any, int]) -> int:
    """Behind it all is done: a signal while the interpreter is taken down would only make the exit code a failure."""
    try:
        return await run
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)


class StopRequest:
    """What SIGTERM and SIGINT do: a server that starts gives up, one that serves ends in good order.

    There is one for a process, from its beginning: a signal that nobody handles would leave the embedded Redis to its
    shim, and the exit code would tell a failure. A second signal changes nothing: the end that the first one began is
    bounded, and cut short it would cost the goodbyes.
    """

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self._starting_task = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._request)

    def _request(self) -> None:
        if self._starting_task is not None and not self._requested.is_set():
            self._starting_task.cancel()
        self._requested.set()

    async def wait(self) -> None:
        """Until it is asked for; who waits has started."""
        self._starting_task = None
        await self._requested.wait()


async def _run_first_process(
    config: Config, flags: Mapping[str, Any], *, with_demo: bool, print_text: PrintText
) -> int:
    """What can be refused is refused before Redis is started: the key, then the port."""
    ending, reload = StopRequest(), SettingsReloader(config, partial(load_again, flags))
    secret = tokens.signing_secret(config)
    tokens.TokenAuthority(config, secret)
    several = config.workers > 1
    held = (supervisor.reserve_port if several else supervisor.listen_alone)(config.host, config.port)
    config = replace(config, port=held.getsockname()[1], jwt_secret=secret)
    async with _embedded_redis(config) as embedded:
        config = config if embedded is None else replace(config, redis=embedded.url)
        with _kept_run_file(config) as tell:
            welcome = partial(_announce_address, config, with_demo=with_demo, print_text=print_text)
            if several:
                return await _run_supervisor(config, flags, held, embedded, welcome, partial(reload.run, report=tell))
            async with serve_application(config, lambda: held) as app:
                feeding, receiving, reloading = app[FEED_TASK], app[JOBS_TASK], reload.run(app[APPLY_SETTINGS], tell)
                return await _wait_until_stopped(
                    ending, feeding, receiving, _wait_redis_exit(embedded), welcome(), reloading
                )


async def _run_supervisor(
    config: Config,
    flags: Mapping[str, Any],
    reserved: socket.socket,
    embedded: EmbeddedRedis | None,
    announce_address: Callable[[], Coroutine[Any, Any, None]],
    run_reloader: Callable[[Callable[[Config], None]], Coroutine[Any, Any, None]],
) -> int:
    """Several workers on one port; this process serves nobody, it only owns Redis and them."""
    workers = supervisor.Supervisor(
        [sys.executable, "-m", "stream_server", "serve"],
        worker_environment(config, flags),
        config.workers,
        stop_seconds=config.shutdown_seconds + WORKER_STOP_MARGIN_SECONDS,
        report=logger.warning,
        listener=None if supervisor.WORKERS_BIND_SOCKETS else reserved,
    )

    def renew(newer: Config) -> None:
        config.apply_reloadable(newer)
        workers.reload_workers(worker_environment(config, flags))

    beside = [
        asyncio.create_task(announce_address(), name="welcome"),
        asyncio.create_task(_stop_without_redis(embedded, workers), name="redis"),
        asyncio.create_task(run_reloader(renew), name="reload"),
    ]
    try:
        code = await workers.run()
    finally:
        for task in beside:
            task.cancel()
        ended = await asyncio.gather(*beside, return_exceptions=True)
    return code or int(ended[1] is True)


async def _stop_without_redis(embedded: EmbeddedRedis | None, workers: supervisor.Supervisor) -> bool:
    await _wait_redis_exit(embedded)
    workers.stop()
    return True


@asynccontextmanager
async def _embedded_redis(config: Config) -> AsyncIterator[EmbeddedRedis | None]:
    """The embedded Redis, unless one was given."""
    if config.redis:
        yield None
        return
    embedded = await EmbeddedRedis.start(Path(config.data_dir) if config.data_dir else None)
    try:
        yield embedded
    finally:
        await embedded.stop()


async def _run_worker(config: Config, flags: Mapping[str, Any], descriptors: WorkerDescriptors) -> int:
    """One of several workers: the supervisor's pipe is its life line."""
    ending, reload = StopRequest(), SettingsReloader(config, partial(load_again, flags))
    listen = partial(supervisor.listen_as_worker, config.host, config.port, descriptors.listening_fd)
    beat = supervisor.WorkerHeartbeat.from_fd(descriptors.supervisor_fd)
    async with AsyncExitStack() as stack:
        with beat.exit_if_orphaned():
            app = await stack.enter_async_context(serve_application(config, listen))
        feeding, receiving, reloading = (
            app[FEED_TASK],
            app[JOBS_TASK],
            reload.run(app[APPLY_SETTINGS], _log_worker_reload),
        )
        return await _wait_until_stopped(ending, feeding, receiving, beat.run(), reloading)


async def _wait_until_stopped(stop_request: StopRequest, *services: Awaitable[Any]) -> int:
    """Wait for SIGTERM or SIGINT (0), or for the first duty that ends: it should not have (1)."""
    asked = asyncio.ensure_future(stop_request.wait())
    tasks: list[asyncio.Future[Any]] = [asked, *map(asyncio.ensure_future, services)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return 0 if asked in done else _exit_code(done)


def _exit_code(done: set[asyncio.Future[Any]]) -> int:
    for task in done:
        if task.exception() is not None:
            logger.error("the server ends", exc_info=task.exception())
    return 1


async def _wait_redis_exit(embedded: EmbeddedRedis | None) -> None:
    """Returns, with a sentence in the log, if the embedded Redis ends by itself."""
    if embedded is None:
        await asyncio.Event().wait()
    else:
        code = await embedded.wait_exit()
        logger.error("the embedded Redis ended by itself with code %s", code)


async def _announce_address(config: Config, *, with_demo: bool, print_text: PrintText) -> None:
    """Say where the server is, and run the demo if asked; ends with the server."""
    address = _address(config)
    await _wait_until_accepting(config.host, config.port)
    print_text(f"stream-server listening on {address}")
    if with_demo:
        verifier = tokens.TokenAuthority(config, config.jwt_secret)

        def mint(user_id: str, scopes: frozenset[str]) -> str:
            return verifier.issue(user_id, scopes, DEMO_TOKEN_SECONDS, time.time())[0]

        await walkthrough.run_demo(address, mint, print_text)
    await asyncio.Event().wait()


async def _wait_until_accepting(host: str, port: int) -> None:
    """Wait until a worker takes connections."""
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return


@contextmanager
def _kept_run_file(config: Config) -> Iterator[Callable[[ReloadOutcome], None]]:
    """While inside, the data folder tells the other commands where the server and its Redis are.

    Gives what hears of reloads: it logs them, and writes them into the note for whoever asked.
    """
    left = RunFile(config.redis, _address(config), os.getpid(), run_file.process_started_at(os.getpid()))

    def tell(outcome: ReloadOutcome) -> None:
        nonlocal left
        for sentence in outcome.sentences():
            logger.log(logging.WARNING if outcome.refused or outcome.needs_restart else logging.INFO, sentence)
        left = msgspec.structs.replace(
            left, reloads=left.reloads + 1, told=outcome.sentences(), refused=bool(outcome.refused)
        )
        if config.data_dir:
            try:
                run_file.write(config.data_dir, left)
            except OSError as error:  # a full disk is no reason to end
                logger.warning("the note in the data folder cannot be written: %s", error.strerror)

    if config.data_dir:
        run_file.write(config.data_dir, left)
    try:
        yield tell
    finally:
        if config.data_dir:
            run_file.remove(config.data_dir)


def _log_worker_reload(outcome: ReloadOutcome) -> None:
    """The supervisor has told what changed; a worker that cannot follow is another thing."""
    if outcome.refused:
        logger.warning("a worker did not follow its supervisor's reload: %s", outcome.refused)


def _address(config: Config) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{config.port}"
