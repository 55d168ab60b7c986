"""Builds the parts of one server process, connects them, and stops them in reverse order.

The order is: store, hub, feed, background services, HTTP.
"""

import asyncio
import gc
import logging
import random
import secrets
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from typing import NamedTuple

from aiohttp import web

from filters.registry import Registry
from stream_server.config.settings import Config
from stream_server.events.bus_signature import BusSignature
from stream_server.events.language import detect_nothing, load_detector
from stream_server.feed.feed import Feed
from stream_server.feed.link_health import LinkHealth
from stream_server.feed.log_reader import LogReader, fill_ring
from stream_server.feed.stream_directory import StreamDirectory
from stream_server.feed.token_validity_cache import MAX_UNHEARD_CANARIES, TokenRecheck, TokenValidityCache
from stream_server.hub.disconnect import ReconnectSpread
from stream_server.hub.hub import Hub
from stream_server.hub.limits import HubLimits
from stream_server.monitoring.history import HistoryRecorder, name_server
from stream_server.monitoring.incidents import RecentErrors
from stream_server.monitoring.metrics import Metrics
from stream_server.monitoring.operations import Operations
from stream_server.monitoring.tracing import start_export
from stream_server.monitoring.worker_sockets import WorkerSockets
from stream_server.runtime import listening, output_thread
from stream_server.runtime.event_loop import LoopWatch
from stream_server.runtime.listening import Listeners
from stream_server.security import signing_keys, tokens
from stream_server.security.clock_check import ClockCheck
from stream_server.security.key_set import RemoteKeySet
from stream_server.security.passwords import Passwords
from stream_server.store.jobs.expiry import ExpiryLoop, make_expiry_loop
from stream_server.store.jobs.upkeep import IdleHomesLoop, LogTrimmer, RepairLoop
from stream_server.store.jobs.workers import JobWorkers
from stream_server.store.log.retention import RetentionLimits
from stream_server.store.redis.replica import count_reads, count_usable
from stream_server.store.redis.script_settings import SiteRules, SizeLimits
from stream_server.store.store import Store
from stream_server.store.write_guard import WriteGuard
from stream_server.trends.counter import TrendCounter
from stream_server.web import routes
from stream_server.web.api.server import load_pages
from stream_server.web.http import app_keys, front_door
from stream_server.web.http.request_limits import LIMITS, RequestLimits
from stream_server.web.streaming.acks import Acks
from stream_server.web.streaming.framing import count_streams
from stream_server.web.streaming.leases import Leases
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER, SubscriptionParser
from stream_server.web.webhooks.batches import read_batch
from stream_server.web.webhooks.deliveries import Deliveries
from stream_server.web.webhooks.sender import Sender

logger = logging.getLogger(__name__)

FEED_TASK: "web.AppKey[asyncio.Task[None]]" = web.AppKey("feed_task")
JOBS_TASK: "web.AppKey[asyncio.Task[None]]" = web.AppKey("jobs_task")
"""The tasks that run the feed and the background services. The server stops if one of them ends."""

GOODBYE_SECONDS = 1.0
"""Seconds that a client has to take the goodbye. The server then closes the connection, because other clients wait."""

ONLY_PROCESS = WorkerSockets()
"""The sockets of a server of one process, which has no other workers."""


@asynccontextmanager
async def running_application(config: Config, workers: WorkerSockets = ONLY_PROCESS) -> AsyncIterator[web.Application]:
    """Run a server without HTTP sockets during the block. Yields the aiohttp application when the feed is ready."""
    subscriptions = SubscriptionParser(_load_filters())
    store = _make_store(config, lambda: feed.detector.recheck())  # noqa: PLW0108 - the feed is made below
    with store.allow_slow_replies(10.0):  # seconds: on a busy machine a start is slower than a request
        await store.open()
        head = await store.log.head()
    log = LogReader(store.log)
    link_health = LinkHealth(random.Random())
    hub = Hub(
        _client_limits(config), log, head,
        now_ms=lambda: time.time_ns() // 1_000_000, lag_ms=link_health.lag_ms,
        read_relations=store.user_graphs.get_graph, parse_rule=subscriptions.parse_rule,
    )  # fmt: skip
    directory = StreamDirectory(
        hub, store.open_streams, lambda: config.streams_per_user if config.limits != "off" else 0, workers.slot
    )
    feed = Feed(
        store.log, store.rollbacks, hub, store.user_graphs.get_restricted_accounts,
        last_written=lambda: store.last_written, link_health=link_health, on_log_readable=log.mark_readable,
        canary_seconds=config.canary_seconds,
        open_signed=BusSignature(signing_keys.to_bus_key(config.bus_secret or secrets.token_hex())).open,
        on_question=lambda message: _answer(hub, directory, message),
    )  # fmt: skip
    passwords, authority = Passwords(config.password_memory_kib), tokens.TokenAuthority(config, config.jwt_secret)
    app = web.Application()
    app[app_keys.CONFIG], app[app_keys.STORE], app[app_keys.HUB] = config, store, hub
    app[app_keys.TOKEN_VALIDITY_CACHE] = _make_token_validity_cache(store, hub, feed)
    app[app_keys.STREAMS], app[app_keys.SUBJECTS], app[app_keys.UNPROVEN] = directory, {}, set()
    app[app_keys.AUTH], app[app_keys.PASSWORDS] = authority, passwords
    app[LIMITS] = RequestLimits(config, store.rate_counters, lambda: services.write_guard.state.limit_bytes)
    directory.on_too_many = partial(app[LIMITS].hits.add, "streams_per_user")
    if config.jwt_jwks_url:
        app[app_keys.KEY_SET] = RemoteKeySet(config.jwt_jwks_url, authority)
    app[SUBSCRIPTION_PARSER] = subscriptions
    app[app_keys.STATIC_FILES] = load_pages(resources.files("stream_server"))
    app[app_keys.SHUTDOWN] = ReconnectSpread(config.retry_spread_seconds, random.Random())
    services = _make_background_services(store, config, hub, directory, authority.clock_check, _make_deliveries(app))
    app[app_keys.READINESS_CHECK] = _readiness(hub, feed, store, services.write_guard, authority.clock_check)
    _add_services(app, services)
    _add_operations(app, feed, services, workers)
    routes.add_routes(app)
    hub.start()
    app[FEED_TASK] = asyncio.create_task(feed.run(), name="feed")
    app[JOBS_TASK] = asyncio.create_task(_run_background_services(services, app), name="background services")
    try:
        await _wait_for_feed(feed, app[FEED_TASK])
        await fill_ring(log.read_back, hub.ring)
        services.trends.begin()  # it counts the entries in the ring, which are from before the start
        yield app
    finally:
        app[FEED_TASK].cancel()
        app[JOBS_TASK].cancel()
        await asyncio.gather(app[FEED_TASK], app[JOBS_TASK], return_exceptions=True)
        if app_keys.KEY_SET in app:
            await app[app_keys.KEY_SET].close()
        passwords.close()
        subscriptions.thread.close()
        await store.close()


@asynccontextmanager
async def serve_application(
    config: Config, listen: Callable[[], Listeners], workers: WorkerSockets = ONLY_PROCESS
) -> AsyncIterator[web.Application]:
    """Run a server on the sockets that ``listen`` returns. After the block, send clients a ``goodbye`` and stop it.

    ``workers`` sends questions to the other workers of the server.
    """
    async with running_application(config, workers) as app, app[app_keys.OPERATIONS].offered():
        door = front_door.FrontDoor(app)
        await door.open(listen().sockets, listening.LISTEN_BACKLOG)
        gc.freeze()  # existing objects live as long as the process, so no collection needs to visit them
        try:
            yield app
        finally:
            await front_door.drain(app, door, config.shutdown_seconds)


def _make_store(config: Config, verify_feed: Callable[[], Awaitable[None]]) -> Store:
    return Store(
        config.redis, timeout_seconds=config.redis_timeout_seconds, replica_urls=config.redis_read,
        min_write_replicas=config.write_replicas,
        size_limits=SizeLimits.of_settings(config),
        rules=SiteRules.of_settings(config),
        detect_language=load_detector() if config.detect_language == "on" else detect_nothing,
        verify_feed=verify_feed, bus_key=signing_keys.to_bus_key(config.bus_secret) if config.bus_secret else b"",
    )  # fmt: skip


def _make_token_validity_cache(store: Store, hub: Hub, feed: Feed) -> TokenValidityCache:
    """Return the memory of valid tokens. The log and the writes of this process report changed rights to it."""
    statuses = TokenValidityCache(store.sessions, feed.heard_log.until, MAX_UNHEARD_CANARIES * feed.canary_seconds)
    hub.on_rights_change = statuses.forget
    store.watch_rights(statuses.forget)
    return statuses


class BackgroundServices(NamedTuple):
    """The objects that do a server's background work, each in a task of its own."""

    job_workers: JobWorkers
    repair_loop: RepairLoop
    expiry_loop: ExpiryLoop
    idle_homes_loop: IdleHomesLoop
    trimmer: LogTrimmer
    loop_watch: LoopWatch
    directory: StreamDirectory
    token_recheck: TokenRecheck
    write_guard: WriteGuard
    trends: TrendCounter
    acks: Acks
    deliveries: Deliveries
    leases: Leases


def _answer(hub: Hub, directory: StreamDirectory, question: bytes) -> None:
    hub.background_tasks.start(directory.answer(question), "question about streams")


def _make_background_services(
    store: Store, config: Config, hub: Hub, directory: StreamDirectory, clock_check: ClockCheck,
    deliveries: Deliveries,
) -> BackgroundServices:  # fmt: skip
    return BackgroundServices(
        JobWorkers(store.job_queue, store.job_runner),
        RepairLoop(store.repair),
        make_expiry_loop(store.expiry, config.status_max_days, config.status_archive_dir),
        IdleHomesLoop(store.idle_homes, config.home_idle_days),
        LogTrimmer(store.retention, RetentionLimits(config.log_max_seconds, config.log_max_bytes), store.subscriptions),
        LoopWatch(),
        directory,
        TokenRecheck(hub, store.sessions),
        WriteGuard(store.state, config.write_replicas, clock_check.compare),
        TrendCounter(hub),
        Acks(store.subscriptions),
        deliveries,
        Leases(store.shared_subscriptions),
    )


def _add_services(app: web.Application, services: BackgroundServices) -> None:
    app[app_keys.WRITE_GUARD], app[app_keys.TRENDS] = services.write_guard, services.trends
    app[app_keys.LOG_TRIMMER], app[app_keys.ACKS] = services.trimmer, services.acks
    app[app_keys.LEASES] = services.leases


def _make_deliveries(app: web.Application) -> Deliveries:
    """Return the deliveries of this process. Its routes send challenges and tests by the same sender."""
    config = app[app_keys.CONFIG]
    app[app_keys.SENDER] = sender = Sender(config.webhook_networks, config.webhook_timeout_seconds)
    return Deliveries(
        app[app_keys.STORE].webhooks, sender, partial(read_batch, app),
        timeout_seconds=config.webhook_timeout_seconds, read_seconds=config.heartbeat_seconds,
        is_on=bool(config.webhooks_per_user), is_stopping=lambda: app[app_keys.HUB].is_stopping,
    )  # fmt: skip


async def _run_background_services(services: BackgroundServices, app: web.Application) -> None:
    """Run all services until cancelled; with ``--job-workers 0``, without job workers and the loops beside them."""
    config = app[app_keys.CONFIG]
    beside_jobs = (services.repair_loop, services.expiry_loop, services.idle_homes_loop)
    loops = (
        *(beside_jobs if config.job_workers else ()), services.trimmer, services.loop_watch, services.directory,
        services.token_recheck, services.write_guard, services.trends, services.acks,
        services.deliveries, services.leases, app[app_keys.HISTORY],
    )  # fmt: skip
    async with asyncio.TaskGroup() as group:
        group.create_task(services.job_workers.run(config.job_workers), name="JobWorkers")
        for loop in loops:
            group.create_task(loop.run(), name=type(loop).__name__)


async def _wait_for_feed(feed: Feed, feed_task: "asyncio.Task[None]") -> None:
    """Wait until the feed is ready for the first time. If the feed fails before that, raise its exception."""
    ready = asyncio.create_task(feed.link_health.healthy.wait(), name="feed: first ready")
    await asyncio.wait({ready, feed_task}, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if feed_task.done():
        feed_task.result()


def _client_limits(config: Config) -> HubLimits:
    """Return the hub's limits. A quarter of ``client_buffer_bytes`` is the kernel's, the rest is counted here."""
    send_buffer_bytes = config.client_buffer_bytes // 4
    return HubLimits(
        buffer_bytes=max(4096, config.client_buffer_bytes - send_buffer_bytes),
        send_buffer_bytes=send_buffer_bytes,
        heartbeat_seconds=config.heartbeat_seconds,
        write_timeout_seconds=config.write_timeout_seconds,
        goodbye_seconds=min(GOODBYE_SECONDS, config.shutdown_seconds / 4),
        ring_bytes=config.ring_bytes,
    )


def _load_filters() -> Registry:
    """Import all installed filters now, so that an unusable filter fails the start of the server and not a request."""
    registry = Registry.from_entry_points()
    if not registry.all():
        raise RuntimeError("no filters are installed: `pip install` the project, so that its entry points exist")
    return registry


def _readiness(
    hub: Hub, feed: Feed, store: Store, guard: WriteGuard, clock_check: ClockCheck
) -> app_keys.ReadinessCheck:
    """Return the check behind ``/readyz``: ready if the feed works, Redis takes writes, and nothing is stopping."""

    def ready() -> tuple[bool, dict[str, object]]:
        fault = store.cluster_fault or guard.fault
        is_ready = feed.is_ready and not hub.is_stopping and not fault
        detail = {"lag_ms": feed.link_health.lag_ms(), "stopping": hub.is_stopping, "cursor": hub.head.cursor}
        if feed.link_health.reason:
            detail["redis"] = feed.link_health.reason
        reason = {"reason": f"nothing can be written: {fault}"} if fault else {}
        nodes = store.unreachable_nodes
        away = (f"{host}:{port} does not answer: its timelines cannot be read" for host, port in nodes)
        warnings = (*away, *clock_check.warnings)
        return is_ready, detail | reason | ({"warnings": warnings} if warnings else {})

    return ready


def _add_operations(app: web.Application, feed: Feed, services: BackgroundServices, workers: WorkerSockets) -> None:
    """Add the metrics of this process, the object that answers for all workers, and the export of traces, if any."""
    hub, limit_hits, is_ready = app[app_keys.HUB], app[LIMITS].hits, app[app_keys.READINESS_CHECK]
    metrics = app[app_keys.METRICS] = _make_metrics(hub, feed, app[app_keys.STORE], services, workers.slot)
    metrics.watch("stream_server_limits_met_total", limit_hits.counts)
    metrics.watch("stream_server_ready", lambda: int(is_ready()[0]))
    metrics.watch("stream_server_subscriptions_endangered", lambda: services.trimmer.endangered)
    metrics.watch("stream_server_webhooks_held", lambda: len(services.deliveries.held))
    metrics.watch("stream_server_webhooks_failing", lambda: services.deliveries.failing)
    metrics.watch("stream_server_webhooks_waiting", lambda: services.deliveries.waiting)
    metrics.watch("stream_server_webhook_requests_total", lambda: app[app_keys.SENDER].outcomes)
    app[app_keys.OPERATIONS] = Operations(metrics, hub, lambda: is_ready()[0], limit_hits, RecentErrors(), workers)
    app[app_keys.HISTORY] = HistoryRecorder(
        metrics, hub, app[app_keys.STORE].operation_samples, name_server(app[app_keys.CONFIG].port), workers.slot
    )
    tracing = start_export(app[app_keys.CONFIG], hub, workers.slot)
    if tracing is not None:
        app[app_keys.TRACING] = tracing
        app.on_cleanup.append(tracing.close)


def _make_metrics(hub: Hub, feed: Feed, store: Store, services: BackgroundServices, worker: int) -> Metrics:
    job_workers, repair_loop, expiry_loop, idle_homes, trimmer, loop_watch, _, token_recheck, write_guard, *_ = services
    readers: dict[str, Callable[[], float | Mapping[str, float]]] = {
        "streams": lambda: count_streams(hub.registry.open_by_framing),
        "streams_live": lambda: hub.live.count,
        "streams_ended_total": lambda: hub.counters.ended_streams,
        "events_published_total": lambda: hub.counters.published,
        "events_delivered_total": lambda: hub.live.flusher.times.delivered,
        "events_malformed_total": lambda: hub.counters.malformed + feed.malformed,
        "events_unsigned_total": lambda: feed.unsigned,
        "events_duplicate_total": lambda: feed.duplicates,
        "events_recovered_total": lambda: feed.recovered,
        "flushes_total": lambda: hub.live.flusher.flushes,
        "flush_ratio": lambda: hub.live.flusher.pause.flush_share,
        "busy_ratio": lambda: hub.live.flusher.pause.pressure,
        "filter_failures_total": lambda: hub.counters.filter_failures + hub.catchup_reader.failures,
        "subscriptions_without_keys": lambda: hub.live.index.scanned_count,
        "stream_rechecks_ended_total": lambda: token_recheck.ended_streams,
        "stream_failures_total": lambda: hub.background_tasks.failures,
        "slow_client_demotions_total": lambda: hub.counters.slow_demotions,
        "redis_reconnects_total": lambda: feed.reconnects,
        "rollbacks_total": lambda: feed.rollbacks,
        "feed_lag_seconds": lambda: feed.link_health.lag_ms() / 1000,
        "ring_bytes": lambda: hub.ring.size_bytes,
        "log_number": lambda: hub.head.n,
        "log_invalid_rows_total": lambda: store.log.invalid_rows,
        "output_lines_dropped_total": output_thread.lines_dropped,
        "tasks": lambda: len(asyncio.all_tasks()),
        "memory_blocks": sys.getallocatedblocks,
        "loop_blocked_max_seconds": lambda: loop_watch.recent_seconds,
        "loop_longest_blocked_seconds": lambda: loop_watch.longest_seconds,
        "loop_blocked_total": lambda: loop_watch.blocked_count,
        "job_passes_total": lambda: job_workers.passes_done,
        "jobs_done_total": lambda: job_workers.jobs_done,
        "job_failures_total": lambda: job_workers.failed_passes,
        "jobs_deferred_total": lambda: store.syndication.failed_passes,
        "repairs_total": lambda: repair_loop.findings,
        "statuses_expired_total": lambda: expiry_loop.left,
        "homes_idle_total": lambda: idle_homes.fallen,
        "status_archive_failures_total": lambda: expiry_loop.archive_failures,
        "jobs_due": lambda: job_workers.queue_depth.due,
        "jobs_parked": lambda: job_workers.queue_depth.parked,
        "redis_nodes_away": lambda: len(store.unreachable_nodes),
        "redis_redirects_total": lambda: store.redirects,
        "replicas_usable": lambda: count_usable(store.replicas),
        "replica_reads_total": lambda: count_reads(store.replicas),
        "redis_memory_bytes": lambda: write_guard.state.used_bytes,
        "redis_memory_limit_bytes": lambda: write_guard.state.limit_bytes,
        "memory_alarm": lambda: int(write_guard.is_nearly_full),
        "write_replicas_missing": lambda: write_guard.missing_replicas,
        "log_entries": lambda: trimmer.log_size.entries,
        "log_bytes": lambda: trimmer.log_size.bytes,
        "log_age_seconds": lambda: trimmer.log_size.age_seconds,
        "log_trimmed_total": lambda: trimmer.trimmed_entries,
    }
    metrics = Metrics(worker)
    metrics.watch_times(hub.live.flusher.times)
    for name, read in readers.items():
        metrics.watch(f"stream_server_{name}", read)
    return metrics
