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

from stream_server import auth, demo, logs, note, supervisor
from stream_server.app import FEEDING, RECEIVING, RENEW, serving
from stream_server.config import Config, anew, environment
from stream_server.embedded import EmbeddedRedis
from stream_server.note import Note
from stream_server.reload import Outcome, Reload

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]

DEMO_TOKEN_SECONDS = 86_400
"""What the demo prints is pasted for a day."""

GC_THRESHOLDS = (20_000, 20, 20)
"""Almost all of what a server makes dies by its reference count; a full collection stops every stream for it."""


STOP_ROOM_SECONDS = 0.6
"""What a worker may take to end beside its goodbyes, before it is killed: with these 4 s, and for Redis a moment more,
everything is gone within 5 s also if one is frozen. It has closed all its connections by then, or never will."""


class Supervised(NamedTuple):
    """File descriptors of a worker: its line to the supervisor, and the socket if it inherits one."""

    line: int
    listening: int | None


def serve(
    config: Config,
    flags: Mapping[str, Any],
    *,
    with_demo: bool,
    announce: Announce,
    supervised: Supervised | None = None,
) -> int:
    """Run until SIGTERM or SIGINT; gives the exit code.

    ``config`` was made with these ``flags``, and is made anew with them at SIGHUP. ``announce`` gets what a person is
    to see, first of all the address. ``supervised`` is there if this process is one of several workers.
    """
    logs.configure(config.log_level, sys.stderr)
    gc.set_threshold(*GC_THRESHOLDS)
    with suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if supervised is not None:
            return runner.run(_deaf_behind(_supervised(config, flags, supervised)))
        return runner.run(_deaf_behind(_serve(config, flags, with_demo=with_demo, announce=announce)))
    return 0  # it was told to end while it started, see Ending


async def _deaf_behind(run: Coroutine[Any, Any, int]) -> int:
    """Behind it all is done: a signal while the interpreter is taken down would only make the exit code a failure."""
    try:
        return await run
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)


class Ending:
    """What SIGTERM and SIGINT do: a server that starts gives up, one that serves ends in good order.

    There is one for a process, from its beginning: a signal that nobody handles would leave the embedded Redis to its
    shim, and the exit code would tell a failure. A second signal changes nothing: the end that the first one began is
    bounded, and cut short it would cost the goodbyes.
    """

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._starting = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._ask)

    def _ask(self) -> None:
        if self._starting is not None and not self._asked.is_set():
            self._starting.cancel()
        self._asked.set()

    async def wait(self) -> None:
        """Until it is asked for; who waits has started."""
        self._starting = None
        await self._asked.wait()


async def _serve(config: Config, flags: Mapping[str, Any], *, with_demo: bool, announce: Announce) -> int:
    """What can be refused is refused before Redis is started: the key, then the port."""
    ending, reload = Ending(), Reload(config, partial(anew, flags))
    secret = auth.own_secret(config)
    auth.Auth(config, secret)
    several = config.workers > 1
    held = (supervisor.reserve if several else supervisor.listen_alone)(config.host, config.port)
    config = replace(config, port=held.getsockname()[1], jwt_secret=secret)
    async with _redis(config) as embedded:
        config = config if embedded is None else replace(config, redis=embedded.url)
        with _noted(config) as tell:
            welcome = partial(_welcome, config, with_demo=with_demo, announce=announce)
            if several:
                return await _supervise(config, flags, held, embedded, welcome, partial(reload.run, tell=tell))
            async with serving(config, lambda: held) as app:
                feeding, receiving, reloading = app[FEEDING], app[RECEIVING], reload.run(app[RENEW], tell)
                return await _until_stopped(ending, feeding, receiving, _redis_gone(embedded), welcome(), reloading)


async def _supervise(
    config: Config,
    flags: Mapping[str, Any],
    reserved: socket.socket,
    embedded: EmbeddedRedis | None,
    welcome: Callable[[], Coroutine[Any, Any, None]],
    reloading: Callable[[Callable[[Config], None]], Coroutine[Any, Any, None]],
) -> int:
    """Several workers on one port; this process serves nobody, it only owns Redis and them."""
    workers = supervisor.Supervisor(
        [sys.executable, "-m", "stream_server", "serve"],
        environment(config, flags),
        config.workers,
        stop_seconds=config.shutdown_seconds + STOP_ROOM_SECONDS,
        report=logger.warning,
        listener=None if supervisor.OWN_SOCKETS else reserved,
    )

    def renew(newer: Config) -> None:
        config.take(newer)
        workers.renew(environment(config, flags))

    beside = [
        asyncio.create_task(welcome(), name="welcome"),
        asyncio.create_task(_end_without_redis(embedded, workers), name="redis"),
        asyncio.create_task(reloading(renew), name="reload"),
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


async def _supervised(config: Config, flags: Mapping[str, Any], supervised: Supervised) -> int:
    """One of several workers: the supervisor's pipe is its life line."""
    ending, reload = Ending(), Reload(config, partial(anew, flags))
    listen = partial(supervisor.listen, config.host, config.port, supervised.listening)
    beat = supervisor.Beat.from_fd(supervised.line)
    async with AsyncExitStack() as stack:
        with beat.starting():
            app = await stack.enter_async_context(serving(config, listen))
        feeding, receiving, reloading = app[FEEDING], app[RECEIVING], reload.run(app[RENEW], _tell_of_worker)
        return await _until_stopped(ending, feeding, receiving, beat.run(), reloading)


async def _until_stopped(ending: Ending, *duties: Awaitable[Any]) -> int:
    """Wait for SIGTERM or SIGINT (0), or for the first duty that ends: it should not have (1)."""
    asked = asyncio.ensure_future(ending.wait())
    tasks: list[asyncio.Future[Any]] = [asked, *map(asyncio.ensure_future, duties)]
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
def _noted(config: Config) -> Iterator[Callable[[Outcome], None]]:
    """While inside, the data folder tells the other commands where the server and its Redis are.

    Gives what hears of reloads: it logs them, and writes them into the note for whoever asked.
    """
    left = Note(config.redis, _address(config), os.getpid(), note.birth(os.getpid()))

    def tell(outcome: Outcome) -> None:
        nonlocal left
        for sentence in outcome.sentences():
            logger.log(logging.WARNING if outcome.refused or outcome.restart else logging.INFO, sentence)
        left = msgspec.structs.replace(
            left, reloads=left.reloads + 1, told=outcome.sentences(), refused=bool(outcome.refused)
        )
        if config.data_dir:
            try:
                note.leave(config.data_dir, left)
            except OSError as error:  # a full disk is no reason to end
                logger.warning("the note in the data folder cannot be written: %s", error.strerror)

    if config.data_dir:
        note.leave(config.data_dir, left)
    try:
        yield tell
    finally:
        if config.data_dir:
            note.remove(config.data_dir)


def _tell_of_worker(outcome: Outcome) -> None:
    """The supervisor has told what changed; a worker that cannot follow is another thing."""
    if outcome.refused:
        logger.warning("a worker did not follow its supervisor's reload: %s", outcome.refused)


def _address(config: Config) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{config.port}"
