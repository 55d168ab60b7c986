"""The state and the metrics of all workers of this server together, read when an operator asks.

The structs are the shapes of ``GET /v1/admin/operations``, and of the reports that workers send each other.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from heapq import nlargest
from typing import Annotated

import msgspec
from msgspec import Meta

from stream_server.build import full_version
from stream_server.events.position import format_iso_time
from stream_server.hub.client import Client
from stream_server.hub.hub import Hub
from stream_server.monitoring.incidents import MAX_ERRORS, LimitHits, RecentErrors
from stream_server.monitoring.metrics import Metrics, merge_texts, read_usage
from stream_server.monitoring.worker_sockets import METRICS, REPORT, WorkerSockets

Time = Annotated[str, Meta(description="ISO 8601 in UTC, with milliseconds")]


class StreamCounts(msgspec.Struct):
    """The numbers of open streams and waiting long polls of one worker, by protocol."""

    sse: int = 0
    ndjson: int = 0
    websocket: int = 0
    v1: Annotated[int, Meta(description="streams of Twitter's API v1.1")] = 0
    v2: Annotated[int, Meta(description="streams of Twitter's API v2")] = 0
    poll: Annotated[int, Meta(description="long polls that wait, and previews and counts of rules")] = 0


class WorkerState(msgspec.Struct):
    """One server process. A worker that does not answer in time is not ``ready``, and its numbers are 0."""

    worker: Annotated[int, Meta(description="its number, from 1")]
    pid: Annotated[int | None, Meta(description="null if the worker does not answer")] = None
    version: str | None = None
    started: Time | None = None
    ready: Annotated[bool, Meta(description="whether new events reach its streams")] = False
    streams: StreamCounts = msgspec.field(default_factory=StreamCounts)
    live: Annotated[int, Meta(description="streams at the head of the log")] = 0
    catching_up: int = 0
    events_published: Annotated[int, Meta(description="entries of the log that it has offered to its streams")] = 0
    events_delivered: Annotated[int, Meta(description="events that it has written, once for each stream")] = 0
    lag_ms: Annotated[int, Meta(description="how far it is behind the log")] = 0
    loop_blocked_seconds: Annotated[float, Meta(description="longest hold of its event loop in the last minute")] = 0
    loop_blocked: Annotated[int, Meta(description="holds of more than 50 ms since its start")] = 0
    memory_bytes: int = 0
    cpu_seconds: float = 0
    requests: Annotated[int, Meta(description="requests that it has answered")] = 0
    refusals: Annotated[dict[str, int], Meta(description="its error answers by code")] = {}


class RedisState(msgspec.Struct):
    """Redis, as the worker that answers sees it. ``reconnects`` is the sum over all workers."""

    memory_bytes: int = 0
    memory_limit_bytes: int = 0
    memory_alarm: Annotated[bool, Meta(description="whether writes are refused, because Redis is nearly full")] = False
    reconnects: int = 0


class LogState(msgspec.Struct):
    """The number of the newest entry, and the length, size and age of the log."""

    number: Annotated[int, Meta(description="the number of the newest entry that a worker has")] = 0
    entries: int = 0
    bytes: int = 0
    age_seconds: Annotated[float, Meta(description="age of the oldest entry, as last measured")] = 0


class JobState(msgspec.Struct):
    """The numbers of background jobs that are due, and that are parked."""

    due: int = 0
    parked: Annotated[int, Meta(description="jobs that failed too often and wait for `stream-server repair`")] = 0


class SlowClient(msgspec.Struct):
    """A stream that is behind the log, or has bytes that its client has not taken."""

    connection: str
    worker: int
    uid: Annotated[str, Meta(description="its user; empty for a stream of a reader token")]
    path: str
    parameters: str
    opened: Time
    behind: Annotated[int, Meta(description="entries of the log between its position and the newest")]
    unsent_bytes: int
    percent: Annotated[int, Meta(description="used share of the buffer for unsent bytes, 0 to 100")]
    reader: Annotated[str, Meta(description="the `jti` of its reader token; empty for a stream of a user")] = ""


class LimitState(msgspec.Struct):
    """A limit that was met: the name of its setting or of what it limits, how often, and when last."""

    limit: str
    count: int
    last: Time


class ErrorState(msgspec.Struct):
    """A warning or an error of the log, without secrets. Equal ones of a worker are one row with their ``count``."""

    at: Annotated[Time, Meta(description="when it last occurred")]
    worker: int
    logger: str
    message: str
    count: int


class HostState(msgspec.Struct):
    """The state of a server: of all its worker processes, of Redis, of the log and of the jobs.

    If another worker asks for it, a worker answers for itself: ``workers``, ``slow_clients``, ``limits`` and ``errors``
    have its own rows only.
    """

    at: Time
    workers: list[WorkerState]
    redis: RedisState
    log: LogState
    jobs: JobState
    slow_clients: Annotated[list[SlowClient], Meta(description="the 20 that are furthest behind")]
    limits: list[LimitState]
    errors: Annotated[list[ErrorState], Meta(description="the 20 newest")]


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
        """Remember this process's errors and answer the questions of other workers, while the block runs."""
        with self._errors.attached():
            async with self._sockets.offered(self.answer):
                yield

    async def answer(self, question: str) -> bytes:
        """Answer a question of another worker. A question that this version does not know gets an empty answer."""
        if question == METRICS:
            return self._metrics.render()
        if question == REPORT:
            return msgspec.json.encode(await self._own_state())
        return b""

    async def render_metrics(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text format."""
        texts = {self._sockets.slot: self._metrics.render(), **await self._sockets.ask_others(METRICS)}
        return merge_texts({slot: texts[slot] for slot in sorted(texts)})

    async def read_state(self) -> HostState:
        """Return the state of all workers. One that does not answer in time is shown as not ready."""
        others = await self._sockets.ask_others(REPORT)
        reports = [await self._own_state(), *(report for answer in others.values() if (report := _decode(answer)))]
        states = {worker.worker: worker for report in reports for worker in report.workers}
        workers = [states.get(slot) or WorkerState(slot) for slot in sorted({*states, *others})]
        return _merge(reports, workers)

    async def _own_state(self) -> HostState:
        value, slot, http, usage = self._value, self._sockets.slot, self._metrics.http, read_usage()
        live = self._hub.live.count
        worker = WorkerState(
            slot, os.getpid(), full_version(), self._started, self._is_ready(),
            msgspec.convert(dict(self._metrics.read("stream_server_streams", {})), StreamCounts), live,
            max(0, len(self._hub.registry) - live), int(value("events_published_total")),
            int(value("events_delivered_total")), self._hub.lag_ms(), round(value("loop_blocked_max_seconds"), 6),
            int(value("loop_blocked_total")), usage.memory_bytes, round(usage.cpu_seconds, 3),
            http.requests.total(), dict(http.refusals),
        )  # fmt: skip
        redis = RedisState(
            int(value("redis_memory_bytes")), int(value("redis_memory_limit_bytes")), bool(value("memory_alarm")),
            int(value("redis_reconnects_total")),
        )  # fmt: skip
        log = LogState(
            int(value("log_number")), int(value("log_entries")), int(value("log_bytes")), value("log_age_seconds")
        )
        hits = self._limit_hits.items().items()
        return HostState(
            format_iso_time(time.time_ns() // 1_000_000), [worker], redis, log,
            JobState(int(value("jobs_due")), int(value("jobs_parked"))), await find_slow_clients(self._hub, slot),
            [LimitState(limit, hit.times, format_iso_time(hit.last_ms)) for limit, hit in hits],
            [
                ErrorState(format_iso_time(error.at_ms), slot, error.logger, error.message, error.times)
                for error in self._errors.newest_first()
            ],
        )  # fmt: skip

    def _value(self, name: str) -> float:
        value: float = self._metrics.read(f"stream_server_{name}", 0)
        return value


def _decode(answer: bytes | None) -> HostState | None:
    try:
        return None if answer is None else msgspec.json.decode(answer, type=HostState)
    except msgspec.MsgspecError:
        return None  # of another version of this program, which is being replaced


def _merge(reports: list[HostState], workers: list[WorkerState]) -> HostState:
    """Return the state of the server from the reports of its workers. The first report is that of this process."""
    own = reports[0]
    reconnects = sum(report.redis.reconnects for report in reports)
    is_raised = any(report.redis.memory_alarm for report in reports)
    slow_clients = (client for report in reports for client in report.slow_clients)
    limits: dict[str, LimitState] = {}
    for limit in (limit for report in reports for limit in report.limits):
        known = limits.setdefault(limit.limit, LimitState(limit.limit, 0, limit.last))
        known.count += limit.count
        known.last = max(known.last, limit.last)
    errors = (error for report in reports for error in report.errors)
    return HostState(
        own.at, workers, msgspec.structs.replace(own.redis, reconnects=reconnects, memory_alarm=is_raised),
        msgspec.structs.replace(own.log, number=max(report.log.number for report in reports)),
        # Each worker counts the jobs of all servers, and one without job workers counts 0.
        JobState(max(report.jobs.due for report in reports), max(report.jobs.parked for report in reports)),
        nlargest(MAX_CLIENTS, slow_clients, key=lambda one: (one.behind, one.unsent_bytes, one.connection)),
        sorted(limits.values(), key=lambda limit: limit.last, reverse=True),
        nlargest(MAX_ERRORS, errors, key=lambda error: error.at),
    )  # fmt: skip


MAX_CLIENTS = 20

SLICE_CLIENTS = 2000
"""Clients that are looked at in one iteration of the event loop, about 1 ms."""


async def find_slow_clients(hub: Hub, worker: int) -> list[SlowClient]:
    """Return at most :data:`MAX_CLIENTS` streams, the furthest behind first. Streams that keep up are left out."""
    clients = hub.registry.list_clients()
    slowest: list[tuple[int, int, str, Client]] = []
    for start in range(0, len(clients), SLICE_CLIENTS):
        candidates = [*slowest, *_behind(hub, clients[start : start + SLICE_CLIENTS])]
        slowest = nlargest(MAX_CLIENTS, candidates, key=lambda row: row[:3])
        await asyncio.sleep(0)
    return [
        SlowClient(
            connection, worker, client.user_id, client.path, client.parameters,
            format_iso_time(int(client.opened_ms)), behind, unsent,
            min(100, unsent * 100 // max(1, hub.limits.buffer_bytes)), "" if client.user_id else client.token.jti,
        )
        for behind, unsent, connection, client in slowest
    ]  # fmt: skip


def _behind(hub: Hub, clients: list[Client]) -> Iterator[tuple[int, int, str, Client]]:
    """Yield how many entries a client is behind, its unsent bytes, the id of its connection, and the client."""
    for client in clients:
        if client.is_poll:
            continue  # no bytes are written to it
        behind = 0 if client.is_live else max(0, hub.head.n - client.position.n)
        try:
            unsent = int(client.buffered_bytes())
        except RuntimeError:
            unsent = 0  # its transport is closed
        if behind or unsent:
            yield behind, unsent, client.connection_id, client
