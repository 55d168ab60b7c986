"""Wires the rooms together and owns their lifetimes: store, hub, feed, HTTP, in this order, and back."""

import asyncio
import gc
import logging
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiohttp import web

from filters.registry import Registry
from stream_server import auth, supervisor
from stream_server.config import Config
from stream_server.detection import Detector, detected, undetermined
from stream_server.feed import Feed
from stream_server.hub.closing import Shutdown
from stream_server.hub.hub import Hub
from stream_server.hub.limits import Limits
from stream_server.jobs import Caretaker, Receivers
from stream_server.jwks import KeySet
from stream_server.log_reader import LogReader
from stream_server.metrics import Metrics
from stream_server.passwords import Passwords
from stream_server.store.log import Log
from stream_server.store.retention import Bounds
from stream_server.store.scripts import Sizes
from stream_server.store.store import Store
from stream_server.trimmer import Trimmer
from stream_server.web import edges, farewell, keys, middleware, routes
from stream_server.web.subscriptions import Subscriptions

logger = logging.getLogger(__name__)

FEEDING: "web.AppKey[asyncio.Task[None]]" = web.AppKey("feeding")
"""The feed's task: if it ends, the server does."""

RECEIVING: "web.AppKey[asyncio.Task[None]]" = web.AppKey("receiving")
"""The task of the receivers of jobs: if it ends, the server does."""

GOODBYE_SECONDS = 1.0
"""Who has not taken the goodbye after so long is dropped, though it may read again: others wait for the end."""

LEAST_BUFFER_BYTES = 4096
"""So much may be unsent beside the kernel's buffer, however that is set."""


RENEW: "web.AppKey[Callable[[Config], None]]" = web.AppKey("renew")
"""Has all that runs go by newer settings, as far as these may change."""


@asynccontextmanager
async def application(config: Config) -> AsyncIterator[web.Application]:
    """The app with everything behind it running; it is fed when it is handed over, and ended behind it."""
    store = Store(
        config.redis, timeout_seconds=config.redis_timeout_seconds, read_url=config.redis_read,
        write_replicas=config.write_replicas, sizes=_sizes(config), language=_language(config),
    )  # fmt: skip
    await store.open()
    log = LogReader(store.log)
    subscriptions = Subscriptions(_filters())
    hub = Hub(
        _limits(config), log, await store.log.head(),
        now_ms=_now_ms, read_viewer=store.viewers.read, read_rule=subscriptions.rule,
    )  # fmt: skip
    feed = Feed(
        store.log, store.rollbacks, hub, store.viewers.outcasts, written=lambda: store.written,
        canary_seconds=config.canary_seconds, random_source=random.Random(),
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
    app[keys.SHUTDOWN] = Shutdown(config.retry_spread_seconds, random.Random())
    duties = _duties(store, config)
    app[RENEW] = lambda newer: _renew(app, feed, duties.trimmer, newer)
    app[keys.METRICS] = _metrics(hub, feed, store.log)
    _watch_duties(app[keys.METRICS], store, duties)
    routes.add(app)
    hub.start()
    feeding = asyncio.create_task(feed.run(), name="feed")
    app[FEEDING] = feeding
    receiving = asyncio.create_task(_receive(duties, config), name="receivers")
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
    """The app on its socket, and at the end its farewell."""
    async with application(config) as app:
        runner = edges.make_runner(app)
        await runner.setup()
        site = web.SockSite(runner, listen(), backlog=supervisor.BACKLOG)
        await site.start()
        gc.freeze()  # what is there now stays: no collection needs to look at it again
        try:
            yield app
        finally:
            await farewell.bid(app, runner, site, config.shutdown_seconds)


class Duties(NamedTuple):
    """What a server does beside answering."""

    receivers: Receivers
    caretaker: Caretaker
    trimmer: Trimmer


def _duties(store: Store, config: Config) -> Duties:
    chance = random.Random()
    return Duties(
        Receivers(store.jobs, store.passes, chance),
        Caretaker(store.repair, chance),
        Trimmer(store.retention, _bounds(config), chance),
    )


async def _receive(duties: Duties, config: Config) -> None:
    """What is done behind requests, until cancelled; a server without receivers looks after the log's end only."""
    async with asyncio.TaskGroup() as group:
        group.create_task(duties.receivers.run(config.receivers), name="receivers")
        group.create_task(duties.caretaker.run(config.repair_seconds if config.receivers else 0), name="caretaker")
        group.create_task(duties.trimmer.run(), name="trimmer")


async def _fed(feed: Feed, feeding: "asyncio.Task[None]") -> None:
    """Wait for the first time that the feed is ready; raises what it failed with."""
    ready = asyncio.create_task(feed.wait_ready(), name="feed: first ready")
    await asyncio.wait({ready, feeding}, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if feeding.done():
        feeding.result()


def _renew(app: web.Application, feed: Feed, trimmer: Trimmer, newer: Config) -> None:
    """Handlers read the settings at each request; whoever keeps one of them is told here."""
    config, hub = app[keys.CONFIG], app[keys.HUB]
    config.take(newer)
    hub.adjust(_limits(config))
    feed.canary_seconds = config.canary_seconds
    trimmer.bound(_bounds(config))
    app[keys.SHUTDOWN].spread_seconds = config.retry_spread_seconds


def _sizes(config: Config) -> Sizes:
    return Sizes(config.log_max_entries, config.timeline_max, config.pass_size)


def _bounds(config: Config) -> Bounds:
    return Bounds(config.log_max_seconds, config.log_max_bytes)


def _language(config: Config) -> Detector:
    return detected if config.detect_language == "on" else undetermined


def _limits(config: Config) -> Limits:
    """The hub's part of a client's bytes is what the kernel's buffer leaves, and never nothing."""
    return Limits(
        buffer_bytes=max(LEAST_BUFFER_BYTES, config.client_buffer_bytes - config.send_buffer_bytes),
        heartbeat_seconds=config.heartbeat_seconds,
        write_timeout_seconds=config.write_timeout_seconds,
        goodbye_seconds=min(GOODBYE_SECONDS, config.shutdown_seconds / 4),
        ring_bytes=config.ring_bytes,
        ring_seconds=config.ring_seconds,
        behind_entries=config.behind_max_entries,
        slow_seconds=config.slow_window_seconds,
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


def _metrics(hub: Hub, feed: Feed, log: Log) -> Metrics:
    metrics = Metrics()
    metrics.watch("stream_server_streams", lambda: len(hub.people))
    metrics.watch("stream_server_streams_live", hub.live_members)
    metrics.watch_each("stream_server_streams_ended_total", lambda: hub.counts.ended)
    metrics.watch("stream_server_events_published_total", lambda: hub.counts.published)
    metrics.watch("stream_server_events_delivered_total", lambda: hub.outflow.delivered)
    metrics.watch("stream_server_events_malformed_total", lambda: hub.counts.malformed + feed.malformed)
    metrics.watch("stream_server_events_repeated_total", lambda: feed.repeated)
    metrics.watch("stream_server_events_repaired_total", lambda: feed.repaired)
    metrics.watch("stream_server_flushes_total", lambda: hub.outflow.flushes)
    metrics.watch("stream_server_filter_failures_total", lambda: hub.counts.failed + hub.reader.failures)
    metrics.watch("stream_server_subscriptions_scanned", lambda: hub.index.scanned)
    metrics.watch("stream_server_stream_failures_total", lambda: hub.errands.failures)
    metrics.watch("stream_server_slow_clients_total", lambda: hub.counts.refused)
    metrics.watch("stream_server_redis_redials_total", lambda: feed.redials)
    metrics.watch("stream_server_rollbacks_total", lambda: feed.rollbacks)
    metrics.watch("stream_server_feed_lag_seconds", lambda: feed.lag_ms() / 1000)
    metrics.watch("stream_server_ring_bytes", lambda: hub.ring.bytes)
    metrics.watch("stream_server_log_number", lambda: hub.head.n)
    metrics.watch("stream_server_log_strangers_total", lambda: log.strangers)
    metrics.watch("stream_server_tasks", lambda: len(asyncio.all_tasks()))
    return metrics


def _watch_duties(metrics: Metrics, store: Store, duties: Duties) -> None:
    receivers, caretaker, trimmer = duties
    metrics.watch("stream_server_job_passes_total", lambda: receivers.passes)
    metrics.watch("stream_server_jobs_done_total", lambda: receivers.done)
    metrics.watch("stream_server_job_failures_total", lambda: receivers.failures)
    metrics.watch("stream_server_jobs_deferred_total", lambda: store.syndication.failures)
    metrics.watch("stream_server_repairs_total", lambda: caretaker.findings)
    metrics.watch("stream_server_jobs_due", lambda: receivers.waiting.due)
    metrics.watch("stream_server_jobs_parked", lambda: receivers.waiting.parked)
    metrics.watch("stream_server_log_entries", lambda: trimmer.extent.entries)
    metrics.watch("stream_server_log_bytes", lambda: trimmer.extent.bytes)
    metrics.watch("stream_server_log_age_seconds", lambda: trimmer.extent.age_seconds)
    metrics.watch("stream_server_log_trimmed_total", lambda: trimmer.taken)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
