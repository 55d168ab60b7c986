"""The figures of the last hour: each worker records a sample every ten seconds, and Redis keeps the samples of all.

A sample has the rates of its own worker, so a sum of samples is right also if a worker was restarted meanwhile. Redis
keeps them, and not the processes, because an operator looks after an incident, and an incident ends processes. While
Redis is away, a worker keeps its samples and stores them afterwards.
"""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stream_server.errors import ApiError
from stream_server.events.position import format_iso_time
from stream_server.hub.hub import Hub
from stream_server.monitoring.metrics import Metrics, read_cpu_seconds, read_memory_bytes
from stream_server.store.operation_samples import KEPT_SECONDS, OperationSamples

SAMPLE_SECONDS = 10
"""Seconds between two samples of a worker. All workers record at the same multiples of it."""

SETTLING_SECONDS = 2
"""Age in seconds that a sample must have to be shown. By then the other workers have stored theirs."""


class Sample(msgspec.Struct, array_like=True):
    """The figures of one worker for the ten seconds before ``at``, in seconds since 1970. Rates are per second."""

    at: int
    worker: int
    streams: int
    events_published: float
    events_delivered: float
    requests: float
    refusals: float
    cpu_percent: float
    lag_ms: int
    loop_blocked_seconds: float
    memory_bytes: int
    redis_memory_bytes: int
    log_entries: int
    jobs: int


class OperationsHistory(msgspec.Struct):
    """The figures of all workers of this server in the last hour. Each list has one value for each time in ``at``.

    Times without a sample are left out: then no worker ran, or Redis lost what it kept. A worker that did not run is
    not in the figures.
    """

    at: list[Annotated[str, Meta(description="ISO 8601 in UTC: the end of ten seconds")]]
    workers: Annotated[list[int], Meta(description="how many workers recorded")]
    streams: Annotated[list[int], Meta(description="open streams and waiting long polls")]
    events_published: Annotated[list[float], Meta(description="entries of the log, each second")]
    events_delivered: Annotated[list[float], Meta(description="events written to streams, each second")]
    requests: Annotated[list[float], Meta(description="requests answered, each second")]
    refusals: Annotated[list[float], Meta(description="error answers, each second")]
    cpu_percent: Annotated[list[float], Meta(description="processor time of all workers, in percent of one core")]
    lag_ms: Annotated[list[int], Meta(description="of the worker that is furthest behind the log")]
    loop_blocked_seconds: Annotated[
        list[float], Meta(description="longest hold of an event loop in the minute before")
    ]
    memory_bytes: Annotated[list[int], Meta(description="resident memory of all workers")]
    redis_memory_bytes: list[int]
    log_entries: list[int]
    jobs: Annotated[list[int], Meta(description="jobs that are due or parked")]


def _add(values: Sequence[float]) -> float:
    return round(sum(values), 2)


_HIGHEST = frozenset({
    "events_published", "lag_ms", "loop_blocked_seconds", "redis_memory_bytes", "log_entries", "jobs",
})  # fmt: skip
"""What all workers measure of the same thing: the highest counts. Of all else, each has a part, and the sum counts."""

_COMBINED = [max if name in _HIGHEST else _add for name in Sample.__struct_fields__[2:]]


class HistoryRecorder:
    """Records the samples of this process, and reads those of all workers of this server.

    Attributes:
        server: The name of the server, under which Redis keeps its samples: those of a restart come to the same ones.
    """

    def __init__(
        self, metrics: Metrics, hub: Hub, samples: OperationSamples, server: str, worker: int = 1, *,
        unix_time: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic,
        cpu_seconds: Callable[[], float] = read_cpu_seconds,
    ) -> None:  # fmt: skip
        self.server = server
        self._metrics = metrics
        self._hub = hub
        self._samples = samples
        self._worker = worker
        self._unix_time = unix_time
        self._monotonic = monotonic
        self._cpu_seconds = cpu_seconds
        self._unsent = deque[Sample](maxlen=KEPT_SECONDS // SAMPLE_SECONDS)
        self._last_at = monotonic()  # the clock may be set between two samples
        self._last = self._counters()

    async def run(self) -> None:
        """Record a sample at each multiple of ten seconds, until cancelled."""
        recorded = 0
        while True:
            now = self._unix_time()
            due = (int(now) // SAMPLE_SECONDS + 1) * SAMPLE_SECONDS
            if due == recorded:  # the last one was early or late; a second sample of this time would hide it
                due += SAMPLE_SECONDS
            await asyncio.sleep(due - now)
            recorded = await self.record()

    async def record(self) -> int:
        """Take a sample, and store it with those that could not be stored before. Return its ``at``."""
        sample = self.take()
        self._unsent.append(sample)
        with suppress(ApiError):
            await self._samples.add(self.server, {msgspec.json.encode(one): one.at for one in self._unsent})
            self._unsent.clear()
        return sample.at

    def take(self) -> Sample:
        """Return what this process did since the last sample. It takes less than a tenth of a millisecond."""
        now, counters = self._monotonic(), self._counters()
        seconds = max(now - self._last_at, 0.001)
        rates = {name: round(max(0.0, value - self._last[name]) / seconds, 2) for name, value in counters.items()}
        self._last_at, self._last = now, counters
        streams: Mapping[str, float] = self._metrics.read("stream_server_streams", {})
        return Sample(
            round(self._unix_time() / SAMPLE_SECONDS) * SAMPLE_SECONDS, self._worker, int(sum(streams.values())),
            rates["published"], rates["delivered"], rates["requests"], rates["refusals"], round(100 * rates["cpu"], 1),
            self._hub.lag_ms(), round(self._value("loop_blocked_max_seconds"), 4), read_memory_bytes(),
            int(self._value("redis_memory_bytes")), int(self._value("log_entries")),
            int(self._value("jobs_due") + self._value("jobs_parked")),
        )  # fmt: skip

    async def read(self) -> OperationsHistory:
        """Return the figures of the last hour. Raises ApiError if Redis does not answer."""
        now = int(self._unix_time())
        found = await self._samples.read(self.server, now - KEPT_SECONDS, now - SETTLING_SECONDS)
        return await asyncio.to_thread(_merge_encoded, found)  # some milliseconds for each worker

    def _counters(self) -> dict[str, float]:
        http = self._metrics.http
        return {
            "published": self._value("events_published_total"), "delivered": self._value("events_delivered_total"),
            "requests": http.requests.total(), "refusals": http.refusals.total(), "cpu": self._cpu_seconds(),
        }  # fmt: skip

    def _value(self, name: str) -> float:
        value: float = self._metrics.read(f"stream_server_{name}", 0)
        return value


def merge(samples: Iterable[Sample]) -> OperationsHistory:
    """Return the samples of all workers as one row of figures for each time, the oldest first."""
    rows: dict[int, dict[int, Sample]] = {}
    for sample in samples:
        rows.setdefault(sample.at, {})[sample.worker] = sample
    times = sorted(rows)
    figures: list[list[Any]] = [[] for _ in _COMBINED]
    for at in times:
        _, _, *columns = zip(*map(msgspec.structs.astuple, rows[at].values()), strict=True)
        for figure, combine, column in zip(figures, _COMBINED, columns, strict=True):
            figure.append(combine(column))
    return OperationsHistory([format_iso_time(at * 1000) for at in times], [len(rows[at]) for at in times], *figures)


def name_server(port: int) -> str:
    """Return a name for the server on this machine that listens on ``port``."""
    return f"{socket.gethostname()}:{port}"


def _merge_encoded(samples: Sequence[bytes]) -> OperationsHistory:
    return merge(sample for each in samples if (sample := _decode(each)))


def _decode(sample: bytes) -> Sample | None:
    try:
        return msgspec.json.decode(sample, type=Sample)
    except msgspec.MsgspecError:
        return None  # of another version of this program
