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
from stream_server.config.settings import Config
from stream_server.events.language import LanguageDetector, detect_language, detect_nothing
from stream_server.feed.feed import Feed
from stream_server.feed.link_health import LinkHealth
from stream_server.feed.log_reader import LogReader
from stream_server.hub.disconnect import ReconnectSpread
from stream_server.hub.hub import Hub
from stream_server.hub.limits import HubLimits
from stream_server.jobs.repair_loop import RepairLoop
from stream_server.jobs.trimmer import LogTrimmer
from stream_server.jobs.workers import JobWorkers
from stream_server.runtime import listening
from stream_server.runtime.metrics import Metrics
from stream_server.security import tokens
from stream_server.security.key_set import RemoteKeySet
from stream_server.security.passwords import Passwords
from stream_server.store.log.event_log import EventLog
from stream_server.store.log.retention import RetentionLimits
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from stream_server.web import routes
from stream_server.web.http import app_keys, drain, http_connection, middleware
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER, SubscriptionParser

logger = logging.getLogger(__name__)

FEED_TASK: "web.AppKey[asyncio.Task[None]]" = web.AppKey("feeding")
"""The feed's task: if it ends, the server does."""

JOBS_TASK: "web.AppKey[asyncio.Task[None]]" = web.AppKey("receiving")
"""The task of the receivers of jobs: if it ends, the server does."""

GOODBYE_SECONDS = 1.0
"""Who has not taken the goodbye after so long is dropped, though it may read again: others wait for the end."""

MIN_BUFFER_BYTES = 4096
"""So much may be unsent beside the kernel's buffer, however that is set."""


APPLY_SETTINGS: "web.AppKey[Callable[[Config], None]]" = web.AppKey("renew")
"""Has all that runs go by newer settings, as far as these may change."""


@asynccontextmanager
async def running_application(config: Config) -> AsyncIterator[web.Application]:
    """The app with everything behind it running; it is fed when it is handed over, and ended behind it."""
    store = Store(
        config.redis, timeout_seconds=config.redis_timeout_seconds, replica_url=config.redis_read,
        min_write_replicas=config.write_replicas, size_limits=_script_sizes(config),
        detect_language=_language_detector(config),
        verify_feed=lambda: feed.detector.recheck(),  # noqa: PLW0108 - the feed is made below
    )  # fmt: skip
    await store.open()
    log = LogReader(store.log)
    link_health = LinkHealth(random.Random())
    subscriptions = SubscriptionParser(_load_filters())
    hub = Hub(
        _client_limits(config), log, await store.log.head(),
        now_ms=_now_ms, lag_ms=link_health.lag_ms,
        read_relations=store.user_graphs.get_graph, parse_rule=subscriptions.parse_rule,
    )  # fmt: skip
    feed = Feed(
        store.log, store.rollbacks, hub, store.user_graphs.get_restricted_accounts,
        last_written=lambda: store.last_written, link_health=link_health, on_log_readable=log.mark_readable,
        canary_seconds=config.canary_seconds,
    )  # fmt: skip
    passwords = Passwords(memory_kib=config.password_memory_kib, rounds=config.password_rounds)
    verifier = tokens.TokenAuthority(config, config.jwt_secret)
    key_set = RemoteKeySet(config.jwt_jwks_url, verifier) if config.jwt_jwks_url else None
    app = web.Application(middlewares=middleware.MIDDLEWARES)
    app[app_keys.CONFIG], app[app_keys.STORE], app[app_keys.HUB] = config, store, hub
    app[app_keys.AUTH], app[app_keys.PASSWORDS], app[app_keys.READINESS_CHECK] = (
        verifier,
        passwords,
        _readiness(hub, feed),
    )
    if key_set is not None:
        app[app_keys.KEY_SET] = key_set
    app[SUBSCRIPTION_PARSER] = subscriptions
    app[app_keys.SHUTDOWN] = ReconnectSpread(config.retry_spread_seconds, random.Random())
    duties = _make_background_services(store, config)
    app[APPLY_SETTINGS] = lambda newer: _apply_settings(app, feed, duties.trimmer, newer)
    app[app_keys.METRICS] = _make_metrics(hub, feed, store.log)
    _watch_background_services(app[app_keys.METRICS], store, duties)
    routes.add_routes(app)
    hub.start()
    feeding = asyncio.create_task(feed.run(), name="feed")
    app[FEED_TASK] = feeding
    receiving = asyncio.create_task(_run_background_services(duties, config), name="background services")
    app[JOBS_TASK] = receiving
    try:
        await _wait_for_feed(feed, feeding)
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
async def serve_application(config: Config, listen: Callable[[], socket.socket]) -> AsyncIterator[web.Application]:
    """The app on its socket, and at the end its farewell."""
    async with running_application(config) as app:
        runner = http_connection.make_runner(app)
        await runner.setup()
        site = web.SockSite(runner, listen(), backlog=listening.LISTEN_BACKLOG)
        await site.start()
        gc.freeze()  # what is there now stays: no collection needs to look at it again
        try:
            yield app
        finally:
            await drain.drain(app, runner, site, config.shutdown_seconds)


class BackgroundServices(NamedTuple):
    """What a server does beside answering."""

    job_workers: JobWorkers
    repair_loop: RepairLoop
    trimmer: LogTrimmer


def _make_background_services(store: Store, config: Config) -> BackgroundServices:
    chance = random.Random()
    return BackgroundServices(
        JobWorkers(store.job_queue, store.job_runner, chance),
        RepairLoop(store.repair, chance),
        LogTrimmer(store.retention, _log_bounds(config), chance),
    )


async def _run_background_services(services: BackgroundServices, config: Config) -> None:
    """What is done behind requests, until cancelled; a server without receivers looks after the log's end only."""
    async with asyncio.TaskGroup() as group:
        group.create_task(services.job_workers.run(config.job_workers), name="job workers")
        group.create_task(
            services.repair_loop.run(config.repair_seconds if config.job_workers else 0), name="repair loop"
        )
        group.create_task(services.trimmer.run(), name="trimmer")


async def _wait_for_feed(feed: Feed, feed_task: "asyncio.Task[None]") -> None:
    """Wait for the first time that the feed is ready; raises what it failed with."""
    ready = asyncio.create_task(feed.wait_ready(), name="feed: first ready")
    await asyncio.wait({ready, feed_task}, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if feed_task.done():
        feed_task.result()


def _apply_settings(app: web.Application, feed: Feed, trimmer: LogTrimmer, newer: Config) -> None:
    """Handlers read the settings at each request; whoever keeps one of them is told here."""
    config, hub = app[app_keys.CONFIG], app[app_keys.HUB]
    config.apply_reloadable(newer)
    hub.apply_limits(_client_limits(config))
    feed.canary_seconds = config.canary_seconds
    trimmer.set_limits(_log_bounds(config))
    app[app_keys.SHUTDOWN].spread_seconds = config.retry_spread_seconds


def _script_sizes(config: Config) -> SizeLimits:
    return SizeLimits(config.log_max_entries, config.timeline_max, config.fanout_batch_size)


def _log_bounds(config: Config) -> RetentionLimits:
    return RetentionLimits(config.log_max_seconds, config.log_max_bytes)


def _language_detector(config: Config) -> LanguageDetector:
    return detect_language if config.detect_language == "on" else detect_nothing


def _client_limits(config: Config) -> HubLimits:
    """The hub's part of a client's bytes is what the kernel's buffer leaves, and never nothing."""
    return HubLimits(
        buffer_bytes=max(MIN_BUFFER_BYTES, config.client_buffer_bytes - config.send_buffer_bytes),
        heartbeat_seconds=config.heartbeat_seconds,
        write_timeout_seconds=config.write_timeout_seconds,
        goodbye_seconds=min(GOODBYE_SECONDS, config.shutdown_seconds / 4),
        ring_bytes=config.ring_bytes,
        ring_seconds=config.ring_seconds,
        far_behind_entries=config.behind_max_entries,
        slow_window_seconds=config.slow_window_seconds,
    )


def _load_filters() -> Registry:
    """All installed filters, imported now: one that cannot be used is told at the start, not to its first client."""
    registry = Registry.from_entry_points()
    if not registry.all():
        raise RuntimeError("no filters are installed: `pip install` the project, so that its entry points exist")
    return registry


def _readiness(hub: Hub, feed: Feed) -> app_keys.ReadinessCheck:
    def ready() -> tuple[bool, dict[str, object]]:
        well = feed.is_ready and not hub.is_stopping
        return well, {"lag_ms": feed.link_health.lag_ms(), "stopping": hub.is_stopping, "cursor": hub.head.cursor}

    return ready


def _make_metrics(hub: Hub, feed: Feed, log: EventLog) -> Metrics:
    metrics = Metrics()
    metrics.watch("stream_server_streams", lambda: len(hub.registry))
    metrics.watch("stream_server_streams_live", hub.count_live_clients)
    metrics.watch_labelled("stream_server_streams_ended_total", lambda: hub.counters.ended_streams)
    metrics.watch("stream_server_events_published_total", lambda: hub.counters.published)
    metrics.watch("stream_server_events_delivered_total", lambda: hub.flusher.delivered)
    metrics.watch("stream_server_events_malformed_total", lambda: hub.counters.malformed + feed.malformed)
    metrics.watch("stream_server_events_duplicate_total", lambda: feed.duplicates)
    metrics.watch("stream_server_events_recovered_total", lambda: feed.recovered)
    metrics.watch("stream_server_flushes_total", lambda: hub.flusher.flushes)
    metrics.watch(
        "stream_server_filter_failures_total", lambda: hub.counters.filter_failures + hub.catchup_reader.failures
    )
    metrics.watch("stream_server_subscriptions_without_keys", lambda: hub.index.scanned_count)
    metrics.watch("stream_server_stream_failures_total", lambda: hub.background_tasks.failures)
    metrics.watch("stream_server_slow_client_demotions_total", lambda: hub.counters.slow_demotions)
    metrics.watch("stream_server_redis_reconnects_total", lambda: feed.reconnects)
    metrics.watch("stream_server_rollbacks_total", lambda: feed.rollbacks)
    metrics.watch("stream_server_feed_lag_seconds", lambda: feed.link_health.lag_ms() / 1000)
    metrics.watch("stream_server_ring_bytes", lambda: hub.ring.size_bytes)
    metrics.watch("stream_server_log_number", lambda: hub.head.n)
    metrics.watch("stream_server_log_invalid_rows_total", lambda: log.invalid_rows)
    metrics.watch("stream_server_tasks", lambda: len(asyncio.all_tasks()))
    return metrics


def _watch_background_services(metrics: Metrics, store: Store, services: BackgroundServices) -> None:
    receivers, caretaker, trimmer = services
    metrics.watch("stream_server_job_passes_total", lambda: receivers.passes_done)
    metrics.watch("stream_server_jobs_done_total", lambda: receivers.jobs_done)
    metrics.watch("stream_server_job_failures_total", lambda: receivers.failed_passes)
    metrics.watch("stream_server_jobs_deferred_total", lambda: store.syndication.failed_passes)
    metrics.watch("stream_server_repairs_total", lambda: caretaker.findings)
    metrics.watch("stream_server_jobs_due", lambda: receivers.queue_depth.due)
    metrics.watch("stream_server_jobs_parked", lambda: receivers.queue_depth.parked)
    metrics.watch("stream_server_log_entries", lambda: trimmer.log_size.entries)
    metrics.watch("stream_server_log_bytes", lambda: trimmer.log_size.bytes)
    metrics.watch("stream_server_log_age_seconds", lambda: trimmer.log_size.age_seconds)
    metrics.watch("stream_server_log_trimmed_total", lambda: trimmer.trimmed_entries)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
