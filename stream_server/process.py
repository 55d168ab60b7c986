"""One server process, or a supervisor of several: what it starts, what it waits for, how it ends.

With one worker this process serves. With more it starts that many of itself on the same port, each of
which serves, and owns only Redis and them.
"""

import asyncio
import gc
import json
import logging
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from stream_server import auth, demo, logs, supervisor
from stream_server.app import FEEDING, RECEIVING, serving
from stream_server.config import Config, environment
from stream_server.embedded import EmbeddedRedis

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]

DEMO_TOKEN_SECONDS = 86_400
"""What the demo prints is pasted for a day."""

GC_THRESHOLDS = (20_000, 20, 20)
"""Almost all of what a server makes dies by its reference count; a full collection stops every stream for it."""

NOTE = "server.json"
"""Left in the data folder for the other commands while the server runs."""


class Supervised(NamedTuple):
    """File descriptors of a worker: its line to the supervisor, and the socket if it inherits one."""

    line: int
    listening: int | None


def serve(config: Config, *, with_demo: bool, announce: Announce, supervised: Supervised | None = None) -> int:
    """Run until SIGTERM or SIGINT; gives the exit code.

    ``announce`` gets what a person is to see, first of all the address. ``supervised`` is there if this
    process is one of several workers.
    """
    logs.configure(config.log_level, sys.stderr)
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if supervised is not None:
            return runner.run(_supervised(config, supervised))
        return runner.run(_serve(config, with_demo=with_demo, announce=announce))


async def _serve(config: Config, *, with_demo: bool, announce: Announce) -> int:
    """What can be refused is refused before Redis is started: the key, then the port."""
    secret = auth.own_secret(config)
    auth.Auth(config, secret)
    several = config.workers > 1
    held = (supervisor.reserve if several else supervisor.listen_alone)(config.host, config.port)
    config = replace(config, port=held.getsockname()[1], jwt_secret=secret)
    async with _redis(config) as embedded:
        config = config if embedded is None else replace(config, redis=embedded.url)
        with _noted(config):
            welcome = partial(_welcome, config, with_demo=with_demo, announce=announce)
            if several:
                return await _supervise(config, held, embedded, welcome)
            async with serving(config, lambda: held) as app:
                feeding, receiving = app[FEEDING], app[RECEIVING]
                return await _until_stopped(feeding, receiving, _redis_gone(embedded), welcome())


async def _supervise(
    config: Config,
    reserved: socket.socket,
    embedded: EmbeddedRedis | None,
    welcome: Callable[[], Coroutine[Any, Any, None]],
) -> int:
    """Several workers on one port; this process serves nobody, it only owns Redis and them."""
    workers = supervisor.Supervisor(
        [sys.executable, "-m", "stream_server", "serve"],
        environment(config),
        config.workers,
        report=logger.warning,
        listener=None if supervisor.OWN_SOCKETS else reserved,
    )
    beside = [
        asyncio.create_task(welcome(), name="welcome"),
        asyncio.create_task(_end_without_redis(embedded, workers), name="redis"),
    ]
    try:
        code = await workers.run()
    finally:
        for task in beside:
            task.cancel()
        ended = await asyncio.gather(*beside, return_exceptions=True)
    return code or int(ended[1] is True)


async def _end_without_redis(embedded: EmbeddedRedis | None, workers: supervisor.Supervisor) -> bool:
    await _redis_gone(embedded)
    workers.stop()
    return True


@asynccontextmanager
async def _redis(config: Config) -> AsyncIterator[EmbeddedRedis | None]:
    """The embedded Redis, unless one was given."""
    if config.redis:
        yield None
        return
    embedded = await EmbeddedRedis.start(Path(config.data_dir) if config.data_dir else None)
    try:
        yield embedded
    finally:
        await embedded.stop()


async def _supervised(config: Config, supervised: Supervised) -> int:
    """One of several workers: the supervisor's pipe is its life line."""
    listen = partial(supervisor.listen, config.host, config.port, supervised.listening)
    beat = supervisor.Beat.from_fd(supervised.line)
    async with AsyncExitStack() as stack:
        with beat.starting():
            app = await stack.enter_async_context(serving(config, listen))
        feeding, receiving = app[FEEDING], app[RECEIVING]
        return await _until_stopped(feeding, receiving, beat.run())


async def _until_stopped(*duties: Awaitable[Any]) -> int:
    """Wait for SIGTERM or SIGINT (0), or for the first duty that ends: it should not have (1)."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(duty) for duty in (stopped.wait(), *duties)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return 0 if stopped.is_set() else _exit_code(done)


def _exit_code(done: set[asyncio.Future[Any]]) -> int:
    for task in done:
        if task.exception() is not None:
            logger.error("the server ends", exc_info=task.exception())
    return 1


async def _redis_gone(embedded: EmbeddedRedis | None) -> None:
    """Returns, with a sentence in the log, if the embedded Redis ends by itself."""
    if embedded is None:
        await asyncio.Event().wait()
    else:
        code = await embedded.wait_dead()
        logger.error("the embedded Redis ended by itself with code %s", code)


async def _welcome(config: Config, *, with_demo: bool, announce: Announce) -> None:
    """Say where the server is, and run the demo if asked; ends with the server."""
    address = _address(config)
    await _accepting(config.host, config.port)
    announce(f"stream-server listening on {address}")
    if with_demo:
        verifier = auth.Auth(config, config.jwt_secret)

        def mint(user_id: str, scopes: frozenset[str]) -> str:
            return verifier.issue(user_id, scopes, DEMO_TOKEN_SECONDS, time.time())[0]

        await demo.run(address, mint, announce)
    await asyncio.Event().wait()


async def _accepting(host: str, port: int) -> None:
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
def _noted(config: Config) -> Iterator[None]:
    """While inside, the data folder tells the other commands where the server and its Redis are."""
    if not config.data_dir:
        yield
        return
    path = Path(config.data_dir) / NOTE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # with a Redis of one's own nobody has made it yet
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_text(json.dumps({"redis": config.redis, "address": _address(config)}))
    partial.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _address(config: Config) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{config.port}"
