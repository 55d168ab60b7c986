"""The metrics of a server process in Prometheus' text format: the table of their names, and their present values.

Hub, feed and jobs count in plain integers, which costs almost nothing. A request for the metrics reads the integers.
Each sample has the label ``worker``, the number of its process, so the metrics of several workers fit into one text.

The counters of HTTP and the usage of the process are here, too.
"""

import os
import re
import resource
import sys
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_server.build import full_version
from stream_server.hub.group import BUCKET_SECONDS, DeliveryTimes
from stream_server.wire.errors import STATUS_BY_CODE

REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Upper bounds of the histogram's buckets in seconds: those of the Prometheus library. Longer times are in one more."""

_REQUESTS = ("stream_server_http_requests_total", "counter", "Answers by method, route and status.")
_REFUSALS = ("stream_server_http_refusals_total", "counter", "Error answers by code.")
_DURATIONS = (
    "stream_server_http_request_duration_seconds", "histogram", "Time to answer a request, without streams, by route."
)  # fmt: skip


class HttpCounters:
    """The answers by method, route and status, the refusals by code, and the times by route.

    Attributes:
        requests: Answers by method, route and status.
        refusals: Error answers by code.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.refusals: Counter[str] = Counter()
        self._times = defaultdict[str, list[int]](lambda: [0] * (len(REQUEST_BUCKETS) + 1))
        self._seconds = defaultdict[str, float](float)

    def count(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count an answer, and the time in seconds that it took. ``seconds`` is None for a stream."""
        # Clients can invent any number of other methods, so those share one label.
        is_usual = method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
        self.requests[method if is_usual else "other", route, status] += 1
        if seconds is not None:
            self._times[route][bisect_left(REQUEST_BUCKETS, seconds)] += 1
            self._seconds[route] += seconds

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for Prometheus."""
        labels = ("method", "route", "status")
        requests = CounterMetricFamily(_REQUESTS[0], _REQUESTS[2], labels=labels)
        for (method, route, status), count in self.requests.items():
            requests.add_metric([method, route, str(status)], count)
        refusals = CounterMetricFamily(_REFUSALS[0], _REFUSALS[2], labels=["code"])
        for code in STATUS_BY_CODE:  # all from the start: to Prometheus, a series that begins with 1 has not increased
            refusals.add_metric([code], self.refusals[code])
        yield requests
        yield refusals
        rows = ((route, counts, self._seconds[route]) for route, counts in self._times.items())
        yield _histogram(_DURATIONS, "route", REQUEST_BUCKETS, rows)


def _histogram(
    about: tuple[str, str, str], label: str, bounds: Sequence[float], rows: Iterable[tuple[str, Sequence[int], float]]
) -> Metric:
    """Return a histogram. A row is a value of ``label``, the counts between the bounds, and the sum of the seconds."""
    metric = HistogramMetricFamily(about[0], about[2], labels=[label])
    for value, counts, seconds in rows:
        buckets = zip((*map(str, bounds), "+Inf"), map(float, accumulate(counts)), strict=True)
        metric.add_metric([value], list(buckets), seconds)
    return metric


class ProcessUsage(NamedTuple):
    """The use of resources of this process.

    Attributes:
        memory_bytes: Resident memory. Without ``/proc``, the most that the process ever had.
        cpu_seconds: Processor time of all threads since the start of the process.
        open_files: Number of open file descriptors; 0 if unknown.
        max_files: Limit of open file descriptors.
    """

    memory_bytes: int
    cpu_seconds: float
    open_files: int
    max_files: int


def read_memory_bytes() -> int:
    """Return the resident memory of this process. Without ``/proc``, the most that it ever had."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def read_cpu_seconds() -> float:
    """Return the processor time of all threads since the start of this process, in seconds."""
    return time.process_time()


def read_usage() -> ProcessUsage:
    """Return the present use of resources of this process. It takes some tenths of a millisecond."""
    try:
        open_files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names; paths of 10,000 files would be slow
    except OSError:
        open_files = 0
    max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ProcessUsage(read_memory_bytes(), read_cpu_seconds(), open_files, max_files)


DELIVERY_LATENCY = (
    "stream_server_delivery_latency_seconds", "histogram",
    "Time from Redis' log to the sockets of live streams, by filter.",
)  # fmt: skip
"""Name, type and meaning of the metric."""

CONTENT_TYPE = CONTENT_TYPE_LATEST
"""Media type of :meth:`Metrics.render`."""

WORKER = "worker"
"""The label with the number of the worker, from 1."""


class WatchedMetric(NamedTuple):
    """A metric whose value is read only when a client requests the metrics.

    ``help`` is its description for people. ``label`` is its label besides ``worker``, if it has one.
    """

    name: str
    help: str
    label: str = ""

    @property
    def kind(self) -> str:
        """The type of the metric in Prometheus: ``counter`` or ``gauge``."""
        return "counter" if self.name.endswith("_total") else "gauge"


_HELP_BY_NAME = {
    "ready": "1 if `/readyz` of this process answers 200, else 0.",
    "streams": "Open streams and waiting long polls, by protocol.",
    "streams_live": "Open streams and waiting long polls that are at the head of the log.",
    "streams_ended_total": "Streams that ended, by the code of their goodbye.",
    "events_published_total": "Entries of the log handed to the hub.",
    "events_delivered_total": "Events written to streams.",
    "events_malformed_total": "Published messages that were not valid entries.",
    "events_unsigned_total": "Messages without a valid signature; the feed read the log instead.",
    "events_duplicate_total": "Published messages that had arrived before.",
    "events_recovered_total": "Entries read from the log because their message did not arrive.",
    "flushes_total": "Flushes: one write to every client with waiting frames.",
    "flush_ratio": "Share of the last tenths of a second that flushes took.",
    "busy_ratio": "Share of the last tenths of a second in which the process worked.",
    "slow_client_demotions_total": "Live clients that were too slow and went back to catching up.",
    "limits_met_total": "Requests and streams that met a limit, by its name.",
    "filter_failures_total": "Exceptions raised by filters.",
    "subscriptions_without_keys": "Subscriptions that each event must be matched against.",
    "stream_rechecks_ended_total": "Streams that ended because a later check found their token invalid.",
    "stream_failures_total": "Streams that ended because of an internal error.",
    "redis_reconnects_total": "Reconnects of the feed to Redis.",
    "rollbacks_total": "Times that Redis had lost the end of the log.",
    "feed_lag_seconds": "Time that the feed is behind the log; 0 is healthy.",
    "loop_blocked_max_seconds": "Longest time that the event loop was blocked in the last minute.",
    "loop_longest_blocked_seconds": "Longest time that the event loop was blocked since the start.",
    "loop_blocked_total": "Times that the event loop was blocked for more than 50 ms.",
    "job_passes_total": "Passes of jobs done by this process.",
    "jobs_done_total": "Jobs finished by this process.",
    "job_failures_total": "Passes that failed; they are retried.",
    "jobs_deferred_total": "First passes that failed within a request and were left to a job worker.",
    "repairs_total": "Faults that the automatic repair found and repaired.",
    "statuses_expired_total": "Statuses that this process removed because of their age.",
    "homes_idle_total": "Home timelines that this process removed because their users stay away.",
    "status_archive_failures_total": "Times that the archive of old statuses could not be written.",
    "jobs_due": "Jobs that wait for a job worker, on all servers.",
    "jobs_parked": "Jobs that failed too often and wait for `stream-server repair`.",
    "log_number": "Number of the hub's last entry.",
    "log_invalid_rows_total": "Rows of the log that are not valid entries, counted at each read.",
    "redis_nodes_away": "Nodes of a Redis Cluster that do not answer this process.",
    "redis_redirects_total": "Commands that a node of a Redis Cluster refused, by its word.",
    "replicas_usable": "Replicas of `--redis-read` from which this process answers pages now.",
    "replica_reads_total": "Calls of requests that only read, which replicas answered or refused.",
    "redis_memory_bytes": "Memory that Redis uses.",
    "redis_memory_limit_bytes": "Memory that Redis may use: its maxmemory, else that of its machine.",
    "memory_alarm": "1 while writes are refused because Redis is nearly full.",
    "write_replicas_missing": "Replicas that a write lacks; above 0, writes are refused.",
    "log_entries": "Entries of the log, as last measured.",
    "log_bytes": "Redis memory of the log, by the counted bytes of its entries.",
    "log_age_seconds": "Age of the first entry of the log.",
    "subscriptions_endangered": "Named subscriptions that will soon lose entries, unless they are read and acked.",
    "webhooks_held": "Webhooks that this process delivers.",
    "webhooks_failing": "Webhooks of all servers whose endpoint fails, and is tried again.",
    "webhooks_waiting": "Webhooks of all servers that no process has room for: each delivers at most 1,000.",
    "webhook_requests_total": "Requests to endpoints of webhooks, by whether they were answered with 2xx.",
    "log_trimmed_total": "Entries that this process removed from the log.",
    "ring_bytes": "Recent entries kept in memory for clients that reconnect.",
    "output_lines_dropped_total": "Lines of the log that were dropped, because nothing read them or writing failed.",
    "tasks": "Tasks of the event loop.",
    "memory_blocks": "Blocks of memory that Python uses: steady without a leak, while the process keeps freed space.",
}

_LABEL_BY_NAME = {
    "streams": "protocol", "streams_ended_total": "code", "limits_met_total": "limit",
    "redis_redirects_total": "word", "replica_reads_total": "outcome",
    "webhook_requests_total": "outcome",
}  # fmt: skip

WATCHED_METRICS = tuple(
    WatchedMetric(f"stream_server_{name}", text, _LABEL_BY_NAME.get(name, "")) for name, text in _HELP_BY_NAME.items()
)
"""The metrics of hub, feed, jobs and log."""

WORKER_UP = ("stream_server_worker_up", "gauge", "1 if the worker answered this scrape, 0 if it did not.")

_PROCESS_METRICS = {
    "process_resident_memory_bytes": ("gauge", "Resident memory of the worker."),
    "process_cpu_seconds_total": ("counter", "Processor time of the worker since its start."),
    "process_start_time_seconds": ("gauge", "When the worker started, in seconds since 1970."),
    "process_open_fds": ("gauge", "Open file descriptors of the worker; 0 if unknown."),
    "process_max_fds": ("gauge", "Limit of open file descriptors."),
}
"""The names that all clients of Prometheus use for a process."""

PROCESS_INFO = ("stream_server_process_info", "info", "Process id and version of each worker.")

ALL_METRICS: tuple[tuple[str, str, str], ...] = (
    *((row.name, row.kind, row.help) for row in WATCHED_METRICS),
    _REQUESTS,
    _REFUSALS,
    _DURATIONS,
    DELIVERY_LATENCY,
    *((name, kind, text) for name, (kind, text) in _PROCESS_METRICS.items()),
    PROCESS_INFO,
    WORKER_UP,
)
"""Name, type and meaning of every metric."""


class Metrics(Collector):
    """The metrics of one server process: the counters of HTTP in ``http``, and the values registered with `watch`.

    ``worker`` is the number of the process.
    """

    def __init__(self, worker: int = 1) -> None:
        registry = self._registry = CollectorRegistry()
        self._worker = str(worker)
        self._started_at, self._version = time.time(), full_version()
        self._readers: dict[str, Callable[[], float | Mapping[str, float]]] = {}
        self._times: DeliveryTimes | None = None
        self.http = HttpCounters()
        registry.register(self)

    def watch(self, name: str, read: Callable[[], float | Mapping[str, float]]) -> None:
        """Register the function ``read`` for the metric ``name``. Each request for the metrics calls ``read``.

        ``read`` returns a number, or a mapping from values of the metric's label to numbers. Raises KeyError if
        :data:`WATCHED_METRICS` does not contain ``name``.
        """
        if name not in {row.name for row in WATCHED_METRICS}:
            raise KeyError(name)
        self._readers[name] = read

    def watch_times(self, times: DeliveryTimes) -> None:
        """Register the function that returns the measured times from Redis' log to the sockets of the streams."""
        self._times = times

    def read(self, name: str, default: Any) -> Any:
        """Return the present value of a watched metric, or ``default`` if nobody watches it."""
        return self._readers[name]() if name in self._readers else default

    def collect(self) -> Iterable[Metric]:
        """Yield the present values of all metrics. The Prometheus library calls this."""
        for metric in self._collect():
            metric.samples = [
                sample._replace(labels={**sample.labels, WORKER: self._worker}) for sample in metric.samples
            ]
            yield metric

    def _collect(self) -> Iterator[Metric]:
        yield from self.http.collect()
        usage = read_usage()
        values = (usage.memory_bytes, usage.cpu_seconds, self._started_at, usage.open_files, usage.max_files)
        for (name, (kind, text)), number in zip(_PROCESS_METRICS.items(), values, strict=True):
            family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            yield family(name, text, value=number)
        name, _, text = PROCESS_INFO
        about = {"pid": str(os.getpid()), "version": self._version}
        yield InfoMetricFamily(name.removesuffix("_info"), text, value=about)
        if self._times is not None:
            measured = (row for row in self._times.histograms() if any(row[1]))
            yield _histogram(DELIVERY_LATENCY, "filter", BUCKET_SECONDS, measured)
        for row in WATCHED_METRICS:
            if row.name not in self._readers:
                continue
            family = CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily
            value = self._readers[row.name]()
            if isinstance(value, Mapping):
                metric = family(row.name, row.help, labels=[row.label])
                for label, count in value.items():
                    metric.add_metric([label], count)
            else:
                metric = family(row.name, row.help, value=value)
            yield metric

    def render(self) -> bytes:
        """Return the metrics of this process in Prometheus' text format. Its media type is :data:`CONTENT_TYPE`."""
        return generate_latest(self._registry)


_FAMILY = re.compile(rb"^(?=# HELP )", re.MULTILINE)


def merge_texts(texts: Mapping[int, bytes | None]) -> bytes:
    """Join the metrics of several workers into one text, so that each metric stands there once with all its samples.

    None stands for a worker that did not answer: its ``stream_server_worker_up`` is 0, and it has no other sample.
    """
    samples: dict[bytes, list[bytes]] = {}
    for text in texts.values():
        for family in _FAMILY.split(text or b""):
            if family:
                first, second, rest = family.split(b"\n", 2)
                samples.setdefault(first + b"\n" + second + b"\n", []).append(rest)
    name, kind, text_of = WORKER_UP
    up = (f'{name}{{{WORKER}="{slot}"}} {0 if text is None else 1}.0\n' for slot, text in texts.items())
    head = f"# HELP {name} {text_of}\n# TYPE {name} {kind}\n"
    merged = [part for family, rows in samples.items() for part in (family, *rows)]
    return b"".join([*merged, head.encode(), "".join(up).encode()])
