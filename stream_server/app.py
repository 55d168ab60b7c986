"""Wires the rooms together and owns their lifetimes: store, hub, feed, HTTP, in this order, and back."""

import asyncio
import gc
import logging
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from filters.registry import Registry
from stream_server import auth, supervisor
from stream_server.config import Config
from stream_server.detection import Detector, detected, undetermined
from stream_server.feed import Feed, LogReader
from stream_server.hub import closing as reasons
from stream_server.hub.closing import Closing
from stream_server.hub.hub import Hub
from stream_server.hub.limits import Limits
from stream_server.jobs import Caretaker, Receivers
from stream_server.jwks import KeySet
from stream_server.metrics import Metrics
from stream_server.passwords import Passwords
from stream_server.store.scripts import Sizes
from stream_server.store.store import Store
from stream_server.web import edges, keys, middleware, routes
from stream_server.web.subscriptions import Subscriptions

logger = logging.getLogger(__name__)

FEEDING: "web.AppKey[asyncio.Task[None]]" = web.AppKey("feeding")
"""The feed's task: if it ends, the server does."""

RECEIVING: "web.AppKey[asyncio.Task[None]]" = web.AppKey("receiving")
"""The task of the receivers of jobs: if it ends, the server does."""

RETRY_SPREAD_SECONDS = (0.5, 5.0)
"""Clients of a stopping server are told to return within this span, each at another moment."""


@asynccontextmanager
async def application(config: Config) -> AsyncIterator[web.Application]:
    """The app with everything behind it running; it is fed when it is handed over, and ended behind it."""
    store = Store(
        config.redis, timeout_seconds=config.redis_timeout_seconds, sizes=_sizes(config), language=_language(config)
    )
    await store.open()
    log = LogReader(store.log)
    subscriptions = Subscriptions(_filters())
    hub = Hub(
        _limits(config), log, await store.log.head(),
        now_ms=_now_ms, read_viewer=store.viewers.read, read_rule=subscriptions.rule,
    )  # fmt: skip
    feed = Feed(
        store.log, hub, store.viewers.outcasts,
        canary_seconds=config.canary_seconds, now_ms=_now_ms, random_source=random.Random(),
    )  # fmt: skip
    passwords = Passwords(memory_kib=config.password_memory_kib, rounds=config.password_rounds)
    verifier = auth.Auth(config, config.jwt_secret)
    key_set = KeySet(config.jwt_jwks_url, verifier) if config.jwt_jwks_url else None
    app = web.Application(middlewares=middleware.MIDDLEWARES)
    app[keys.CONFIG], app[keys.STORE], app[keys.HUB] = config, store, hub
    app[keys.AUTH], app[keys.PASSWORDS], app[keys.READINESS] = verifier, passwords, _readiness(hub, feed)
    if key_set is not None:
        app[keys.KEY_SET] = key_set
    app[keys.SUBSCRIPTIONS] = subscriptions
    receivers = Receivers(store.jobs, store.passes, random.Random())
    caretaker = Caretaker(store.repair, random.Random())
    app[keys.METRICS] = _metrics(hub, feed)
    _watch_jobs(app[keys.METRICS], store, receivers, caretaker)
    routes.add(app)
    hub.start()
    feeding = asyncio.create_task(feed.run(), name="feed")
    app[FEEDING] = feeding
    receiving = asyncio.create_task(_receive(receivers, caretaker, config), name="receivers")
    app[RECEIVING] = receiving
    try:
        await _fed(feed, feeding)
        yield app
    finally:
        feeding.cancel()
        receiving.cancel()
        await asyncio.gather(feeding, receiving, return_exceptions=True)
        if key_set is not None:
            await key_set.close()
        passwords.close()
        await store.close()


@asynccontextmanager
async def serving(config: Config, listen: Callable[[], socket.socket]) -> AsyncIterator[web.Application]:
    """The app on its socket. At the end: not ready, no new connection, goodbye to everyone, then the rest."""
    async with application(config) as app:
        runner = edges.make_runner(app, config)
        await runner.setup()
        site = web.SockSite(runner, listen(), backlog=supervisor.BACKLOG)
        await site.start()
        gc.freeze()  # what is there now stays: no collection needs to look at it again
        try:
            yield app
        finally:
            await site.stop()
            hub = app[keys.HUB]
            hub.stop(_jittered(random.Random()))
            await hub.emptied(config.shutdown_seconds / 2)
            await hub.errands.cancel()
            await runner.cleanup()


async def _receive(receivers: Receivers, caretaker: Caretaker, config: Config) -> None:
    """What is done behind requests, until cancelled; a server without receivers looks after nothing either."""
    async with asyncio.TaskGroup() as group:
        group.create_task(receivers.run(config.receivers), name="receivers")
        group.create_task(caretaker.run(config.repair_seconds if config.receivers else 0), name="caretaker")


async def _fed(feed: Feed, feeding: "asyncio.Task[None]") -> None:
    """Wait for the first time that the feed is ready; raises what it failed with."""
    ready = asyncio.create_task(feed.wait_ready(), name="feed: first ready")
    await asyncio.wait({ready, feeding}, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if feeding.done():
        feeding.result()


def _sizes(config: Config) -> Sizes:
    return Sizes(config.log_max_entries, config.timeline_max, config.pass_size)


def _language(config: Config) -> Detector:
    return detected if config.detect_language == "on" else undetermined


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
    metrics.watch("stream_server_events_delivered_total", lambda: hub.outflow.delivered)
    metrics.watch("stream_server_events_malformed_total", lambda: hub.counts.malformed + feed.malformed)
    metrics.watch("stream_server_events_repaired_total", lambda: feed.repaired)
    metrics.watch("stream_server_flushes_total", lambda: hub.outflow.flushes)
    metrics.watch("stream_server_filter_failures_total", lambda: hub.counts.failed + hub.reader.failures)
    metrics.watch("stream_server_subscriptions_scanned", lambda: hub.index.scanned)
    metrics.watch("stream_server_stream_failures_total", lambda: hub.errands.failures)
    metrics.watch("stream_server_slow_clients_total", lambda: hub.counts.refused)
    metrics.watch("stream_server_redis_redials_total", lambda: feed.redials)
    metrics.watch("stream_server_feed_lag_seconds", lambda: feed.lag_ms() / 1000)
    metrics.watch("stream_server_ring_bytes", lambda: hub.ring.bytes)
    return metrics


def _watch_jobs(metrics: Metrics, store: Store, receivers: Receivers, caretaker: Caretaker) -> None:
    metrics.watch("stream_server_job_passes_total", lambda: receivers.passes)
    metrics.watch("stream_server_jobs_done_total", lambda: receivers.done)
    metrics.watch("stream_server_job_failures_total", lambda: receivers.failures)
    metrics.watch("stream_server_jobs_deferred_total", lambda: store.syndication.failures)
    metrics.watch("stream_server_repairs_total", lambda: caretaker.findings)
    metrics.watch("stream_server_jobs_due", lambda: receivers.waiting.due)
    metrics.watch("stream_server_jobs_parked", lambda: receivers.waiting.parked)


def _jittered(source: random.Random) -> Callable[[], Closing]:
    return lambda: reasons.shutdown(round(source.uniform(*RETRY_SPREAD_SECONDS), 2))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
