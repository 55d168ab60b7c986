"""The state and the metrics of all workers of this server together, read when an operator asks."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from heapq import nlargest
from typing import TypeVar

import msgspec

from stream_server.build import full_version
from stream_server.events.position import format_iso_time
from stream_server.hub.client import Client
from stream_server.hub.hub import Hub
from stream_server.monitoring.host_state import (
    ErrorState,
    HostState,
    JobState,
    LimitState,
    LogState,
    RedisState,
    SlowClient,
    StreamCounts,
    WorkerReport,
    WorkerState,
)
from stream_server.monitoring.limit_hits import LimitHits
from stream_server.monitoring.metrics import Metrics, merge_texts, read_usage
from stream_server.monitoring.recent_errors import MAX_ERRORS, RecentErrors
from stream_server.monitoring.worker_sockets import METRICS, REPORT, WorkerSockets

Report = TypeVar("Report")


class Operations:
    """The state of this server for its operator. Any worker answers for all of them.

    Args:
        metrics: The metrics of this process, whose values the report uses too.
        is_ready: Returns whether new events reach the streams of this process.
        limit_hits: The limits that were met in this process.
        errors: The last warnings and errors of this process.
        sockets: Sends questions to the other workers.
    """

    def __init__(
        self, metrics: Metrics, hub: Hub, is_ready: Callable[[], bool], limit_hits: LimitHits, errors: RecentErrors,
        sockets: WorkerSockets,
    ) -> None:  # fmt: skip
        self._metrics = metrics
        self._hub = hub
        self._is_ready = is_ready
        self._limit_hits = limit_hits
        self._errors = errors
        self._sockets = sockets
        self._started = format_iso_time(time.time_ns() // 1_000_000)

    @asynccontextmanager
    async def offered(self) -> AsyncIterator[None]:
        """A context: during the block, this process remembers its errors and answers questions of the other workers."""
        with self._errors.attached():
            async with self._sockets.offered(self.answer):
                yield

    async def answer(self, question: str) -> bytes:
        """Answer a question of another worker. A question that this version does not know gets an empty answer."""
        if question == METRICS:
            return self._metrics.render()
        if question == REPORT:
            return msgspec.json.encode(await self._own_report())
        return b""

    async def render_metrics(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text format."""
        texts = {self._sockets.slot: self._metrics.render(), **await self._sockets.ask_others(METRICS)}
        return merge_texts({slot: texts[slot] for slot in sorted(texts)})

    async def read_state(self) -> HostState:
        """Return the state of all workers. One that does not answer in time is shown as not ready."""
        others = await self._sockets.ask_others(REPORT)
        own = await self._own_report()
        reports = [own, *(report for answer in others.values() if (report := _decode(answer, WorkerReport)))]
        states = {report.state.worker: report.state for report in reports}
        workers = [states.get(slot) or WorkerState(slot) for slot in sorted({*states, *others})]
        return HostState(
            format_iso_time(time.time_ns() // 1_000_000), workers, _merge_redis(reports), _merge_log(reports),
            _merge_jobs(reports), _merge_slow(reports), _merge_limits(reports), _merge_errors(reports),
        )  # fmt: skip

    async def _own_report(self) -> WorkerReport:
        value, slot = self._value, self._sockets.slot
        redis = RedisState(
            int(value("redis_memory_bytes")), int(value("redis_memory_limit_bytes")), bool(value("memory_alarm")),
            int(value("redis_reconnects_total")),
        )  # fmt: skip
        log = LogState(
            int(value("log_number")), int(value("log_entries")), int(value("log_bytes")), value("log_age_seconds")
        )
        return WorkerReport(
            redis, log, JobState(int(value("jobs_due")), int(value("jobs_parked"))),
            await find_slow_clients(self._hub, slot), self._own_limits(), self._own_errors(), self._own_state(),
        )  # fmt: skip

    def _own_state(self) -> WorkerState:
        value, http, usage = self._value, self._metrics.http, read_usage()
        live = self._hub.count_live_clients()
        return WorkerState(
            self._sockets.slot, os.getpid(), full_version(), self._started, self._is_ready(), self._streams(), live,
            max(0, len(self._hub.registry) - live), int(value("events_published_total")),
            int(value("events_delivered_total")), self._hub.lag_ms(), round(value("loop_blocked_max_seconds"), 6),
            int(value("loop_blocked_total")), usage.memory_bytes, round(usage.cpu_seconds, 3),
            http.requests.total(), dict(http.refusals),
        )  # fmt: skip

    def _streams(self) -> StreamCounts:
        return msgspec.convert(dict(self._metrics.read("stream_server_streams", {})), StreamCounts)

    def _own_limits(self) -> list[LimitState]:
        hits = self._limit_hits.items().items()
        return [LimitState(limit, hit.times, format_iso_time(hit.last_ms)) for limit, hit in hits]

    def _own_errors(self) -> list[ErrorState]:
        slot = self._sockets.slot
        return [
            ErrorState(format_iso_time(error.at_ms), slot, error.logger, error.message, error.times)
            for error in self._errors.newest_first()
        ]

    def _value(self, name: str) -> float:
        value: float = self._metrics.read(f"stream_server_{name}", 0)
        return value


def _decode(answer: bytes | None, kind: type[Report]) -> Report | None:
    try:
        return None if answer is None else msgspec.json.decode(answer, type=kind)
    except msgspec.MsgspecError:
        return None  # of another version of this program, which is being replaced


def _merge_redis(reports: list[WorkerReport]) -> RedisState:
    reconnects = sum(report.redis.reconnects for report in reports)
    is_raised = any(report.redis.memory_alarm for report in reports)
    return msgspec.structs.replace(reports[0].redis, reconnects=reconnects, memory_alarm=is_raised)


def _merge_log(reports: list[WorkerReport]) -> LogState:
    return msgspec.structs.replace(reports[0].log, number=max(report.log.number for report in reports))


def _merge_jobs(reports: list[WorkerReport]) -> JobState:
    """Return the greatest counts: each worker counts the jobs of all servers, and one without job workers counts 0."""
    return JobState(max(report.jobs.due for report in reports), max(report.jobs.parked for report in reports))


def _merge_slow(reports: list[WorkerReport]) -> list[SlowClient]:
    found = (client for report in reports for client in report.slow_clients)
    return nlargest(MAX_CLIENTS, found, key=lambda client: (client.behind, client.unsent_bytes, client.connection))


def _merge_limits(reports: Iterable[WorkerReport]) -> list[LimitState]:
    """Return one row for each limit that was met in any worker, the last met first."""
    merged: dict[str, LimitState] = {}
    for limit in (limit for report in reports for limit in report.limits):
        known = merged.setdefault(limit.limit, LimitState(limit.limit, 0, limit.last))
        known.count += limit.count
        known.last = max(known.last, limit.last)
    return sorted(merged.values(), key=lambda limit: limit.last, reverse=True)


def _merge_errors(reports: Iterable[WorkerReport]) -> list[ErrorState]:
    found = (error for report in reports for error in report.errors)
    return nlargest(MAX_ERRORS, found, key=lambda error: error.at)


MAX_CLIENTS = 20

SLICE_CLIENTS = 2000
"""Clients that are looked at in one iteration of the event loop, about 1 ms."""


async def find_slow_clients(hub: Hub, worker: int) -> list[SlowClient]:
    """Return at most :data:`MAX_CLIENTS` streams, the furthest behind first. Streams that keep up are left out."""
    clients = hub.registry.list_clients()
    slowest: list[tuple[int, int, str, Client]] = []
    for start in range(0, len(clients), SLICE_CLIENTS):
        slowest = nlargest(MAX_CLIENTS, [*slowest, *_behind(hub, clients[start : start + SLICE_CLIENTS])], key=_rank)
        await asyncio.sleep(0)
    return [_describe(hub, worker, behind, unsent, client) for behind, unsent, _, client in slowest]


def _behind(hub: Hub, clients: list[Client]) -> Iterator[tuple[int, int, str, Client]]:
    for client in clients:
        if client.is_poll:
            continue  # no bytes are written to it
        behind = 0 if client in hub.live else max(0, hub.head.n - client.position.n)
        unsent = _unsent_bytes(client)
        if behind or unsent:
            yield behind, unsent, client.request.connection_id, client


def _rank(row: tuple[int, int, str, Client]) -> tuple[int, int, str]:
    return row[:3]


def _unsent_bytes(client: Client) -> int:
    try:
        return int(client.buffered_bytes())
    except RuntimeError:
        return 0  # its transport is closed


def _describe(hub: Hub, worker: int, behind: int, unsent: int, client: Client) -> SlowClient:
    request = client.request
    percent = min(100, unsent * 100 // max(1, hub.limits.buffer_bytes))
    return SlowClient(
        request.connection_id, worker, request.user_id, request.path, request.parameters,
        format_iso_time(request.opened_ms), behind, unsent, percent,
    )  # fmt: skip
