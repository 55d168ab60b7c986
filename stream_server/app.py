"""Wires the rooms together and owns their lifetimes: Redis, store, feed, hub, HTTP, in this order, and back.

``serve`` is the whole server: with one worker it is this process, with more it is a supervisor of others
that run the same ``_work`` on the same port.
"""

import asyncio
import json
import logging
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from aiohttp import web

from filters.registry import Registry
from stream_server import auth, demo, supervisor
from stream_server.config import Config, environment
from stream_server.embedded import EmbeddedRedis
from stream_server.feed import Feed, LogReader
from stream_server.hub import closing as reasons
from stream_server.hub.closing import Closing
from stream_server.hub.hub import Hub, Limits
from stream_server.jwks import KeySet
from stream_server.metrics import Metrics
from stream_server.passwords import Passwords
from stream_server.store.store import Store
from stream_server.web import edges, keys, middleware, routes
from stream_server.web.subscriptions import Subscriptions

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]


class Supervised(NamedTuple):
    """File descriptors of a worker: its line to the supervisor, and the socket if it inherits one."""

    line: int
    listening: int | None


FEEDING: "web.AppKey[asyncio.Task[None]]" = web.AppKey("feeding")
"""The feed's task: if it ends, the server does."""

RETRY_SPREAD_SECONDS = (0.5, 5.0)
"""Clients of a stopping server are told to return within this span, each at another moment."""


def serve(config: Config, *, with_demo: bool, announce: Announce, supervised: Supervised | None = None) -> int:
    """Run until SIGTERM or SIGINT; gives the exit code.

    ``announce`` gets what a person is to see, first of all the address. ``supervised`` is there if this
    process is one of several workers.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if supervised is not None:
            return runner.run(_supervised(config, supervised))
        return runner.run(_serve(config, with_demo=with_demo, announce=announce))


async def _serve(config: Config, *, with_demo: bool, announce: Announce) -> int:
    secret = auth.own_secret(config)
    async with _redis(config) as embedded:
        url = config.redis if embedded is None else embedded.url
        config = replace(config, redis=url, jwt_secret=secret)
        if config.workers > 1:
            return await _supervise(config, embedded, with_demo=with_demo, announce=announce)
        listening = supervisor.listen_alone(config.host, config.port)
        address = _address(config.host, listening.getsockname()[1])
        async with _serving(config, listening) as app:
            feeding = app[FEEDING]
            welcome = _welcome(config, address, with_demo=with_demo, announce=announce)
            return await _until_stopped(feeding, _redis_gone(embedded), welcome)


async def _supervise(
    config: Config, embedded: EmbeddedRedis | None, *, with_demo: bool, announce: Announce
) -> int:
    """Several workers on one port; this process serves nobody, it only owns Redis and them."""
    reserved = supervisor.reserve(config.host, config.port)
    config = replace(config, port=reserved.getsockname()[1])
    workers = supervisor.Supervisor(
        [sys.executable, "-m", "stream_server", "serve"],
        environment(config),
        config.workers,
        report=logger.warning,
        listener=None if supervisor.OWN_SOCKETS else reserved,
    )
    address = _address(config.host, config.port)
    beside = [
        asyncio.create_task(_welcome(config, address, with_demo=with_demo, announce=announce), name="welcome"),
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


@asynccontextmanager
async def application(config: Config) -> AsyncIterator[web.Application]:
    """The app with everything behind it running; it is fed when it is handed over, and ended behind it."""
    store = Store(
        config.redis, timeout_seconds=config.redis_timeout_seconds, log_max_entries=config.log_max_entries
    )
    await store.open()
    hub = Hub(_limits(config), LogReader(store.log), await store.log.head(), now_ms=_now_ms)
    feed = Feed(store.log, hub, canary_seconds=config.canary_seconds, now_ms=_now_ms, random_source=random.Random())
    passwords = Passwords(memory_kib=config.password_memory_kib, rounds=config.password_rounds)
    verifier = auth.Auth(config, config.jwt_secret)
    key_set = KeySet(config.jwt_jwks_url, verifier) if config.jwt_jwks_url else None
    app = web.Application(middlewares=middleware.MIDDLEWARES)
    app[keys.CONFIG], app[keys.STORE], app[keys.HUB] = config, store, hub
    app[keys.AUTH], app[keys.PASSWORDS], app[keys.READINESS] = verifier, passwords, _readiness(hub, feed)
    if key_set is not None:
        app[keys.KEY_SET] = key_set
    app[keys.SUBSCRIPTIONS] = Subscriptions(_filters())
    app[keys.METRICS] = _metrics(hub, feed)
    routes.add(app)
    hub.start()
    feeding = asyncio.create_task(feed.run(), name="feed")
    app[FEEDING] = feeding
    try:
        await feed.wait_ready()
        yield app
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        if key_set is not None:
            await key_set.close()
        passwords.close()
        await store.close()


@asynccontextmanager
async def _serving(config: Config, listening: socket.socket) -> AsyncIterator[web.Application]:
    """The app on its socket. At the end: not ready, no new connection, goodbye to everyone, then the rest."""
    async with application(config) as app:
        runner = edges.make_runner(app, config)
        await runner.setup()
        site = web.SockSite(runner, listening, backlog=4096)
        await site.start()
        try:
            yield app
        finally:
            await site.stop()
            hub = app[keys.HUB]
            hub.stop(_jittered(random.Random()))
            await hub.emptied(config.shutdown_seconds / 2)
            await hub.errands.cancel()
            await runner.cleanup()


async def _supervised(config: Config, supervised: Supervised) -> int:
    """One of several workers: the supervisor's pipe is its life line."""
    listening = supervisor.listen(config.host, config.port, supervised.listening)
    async with _serving(config, listening) as app:
        feeding = app[FEEDING]
        return await _until_stopped(feeding, supervisor.Beat.from_fd(supervised.line).run())


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


async def _welcome(config: Config, address: str, *, with_demo: bool, announce: Announce) -> None:
    """Say where the server is, note it for the other commands, and run the demo if asked; ends with the server."""
    await _accepting(config.host, int(address.rpartition(":")[2]))
    announce(f"stream-server listening on {address}")
    if config.data_dir:
        _note(Path(config.data_dir) / "server.json", {"redis": config.redis, "address": address})
    if with_demo:
        verifier = auth.Auth(config, config.jwt_secret)

        def mint(user_id: str, scopes: frozenset[str]) -> str:
            return verifier.issue(user_id, scopes, config.token_ttl_seconds, time.time())[0]

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


def _note(path: Path, members: dict[str, str]) -> None:
    """Write a small file that only its owner can read, whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(members))
    partial.replace(path)


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _limits(config: Config) -> Limits:
    return Limits(
        buffer_bytes=config.client_buffer_bytes,
        heartbeat_seconds=config.heartbeat_seconds,
        write_timeout_seconds=config.write_timeout_seconds,
        goodbye_seconds=1.0,
        ring_bytes=config.ring_bytes,
        ring_seconds=config.ring_seconds,
    )


def _filters() -> Registry:
    """All installed filters, imported now: one that cannot be used is told at the start, not to its first client."""
    registry = Registry.from_entry_points()
    if not registry.all():
        raise RuntimeError("no filters are installed: `pip install` the project, so that its entry points exist")
    return registry


def _readiness(hub: Hub, feed: Feed) -> keys.Readiness:
    def ready() -> tuple[bool, dict[str, object]]:
        well = feed.ready and not hub.stopping
        return well, {"lag_ms": feed.lag_ms(), "stopping": hub.stopping, "cursor": hub.head.cursor}

    return ready


def _metrics(hub: Hub, feed: Feed) -> Metrics:
    metrics = Metrics()
    metrics.watch("stream_server_streams", lambda: len(hub.people))
    metrics.watch("stream_server_streams_live", hub.live_members)
    metrics.watch("stream_server_events_published_total", lambda: hub.counts.published)
    metrics.watch("stream_server_events_delivered_total", lambda: hub.counts.delivered)
    metrics.watch("stream_server_events_malformed_total", lambda: hub.counts.malformed + feed.malformed)
    metrics.watch("stream_server_events_repaired_total", lambda: feed.repaired)
    metrics.watch("stream_server_flushes_total", lambda: hub.counts.flushes)
    metrics.watch("stream_server_slow_clients_total", lambda: hub.counts.refused)
    metrics.watch("stream_server_redis_redials_total", lambda: feed.redials)
    metrics.watch("stream_server_feed_lag_seconds", lambda: feed.lag_ms() / 1000)
    metrics.watch("stream_server_ring_bytes", lambda: hub.ring.bytes)
    return metrics


def _jittered(source: random.Random) -> Callable[[], Closing]:
    return lambda: reasons.shutdown(round(source.uniform(*RETRY_SPREAD_SECONDS), 2))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
