"""The metrics of a server process in Prometheus' text format: the table of their names, and their present values.

Hub, feed and jobs count in plain integers, which costs almost nothing. A request for the metrics reads the integers.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Info, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_server import __version__
from stream_server.runtime.http_counters import HttpCounters

CONTENT_TYPE = CONTENT_TYPE_LATEST
"""Media type of :meth:`Metrics.render`."""


class WatchedMetric(NamedTuple):
    """A metric whose value is read only when a client requests the metrics. ``help`` is its description for people."""

    name: str
    help: str

    @property
    def kind(self) -> str:
        """The type of the metric in Prometheus: ``counter`` or ``gauge``."""
        return "counter" if self.name.endswith("_total") else "gauge"


_HELP_BY_NAME = {
    "streams": "Streams open now.",
    "streams_live": "Streams that are at the head of the log.",
    "streams_ended_total": "Streams that ended, by the code of their goodbye.",
    "events_published_total": "Entries of the log handed to the hub.",
    "events_delivered_total": "Events written to streams, live or catching up.",
    "events_malformed_total": "Published messages that were not valid entries; skipped.",
    "events_unsigned_total": "Messages without a valid signature; the feed read the log instead of believing them.",
    "events_duplicate_total": "Published messages that had arrived before; skipped.",
    "events_recovered_total": "Entries read from the log because their message did not arrive.",
    "flushes_total": "Flushes: one write to every client with waiting frames.",
    "flush_share": "Share of the last tenths of a second that flushes took.",
    "flush_pressure": "Share of the last tenths of a second in which the process worked; near 1, flushes wait to join.",
    "slow_client_demotions_total": "Live clients that were too slow and went back to catching up.",
    "filter_failures_total": "Exceptions raised by filters.",
    "subscriptions_without_keys": "Subscriptions without index keys; each event is matched against all of them.",
    "stream_rechecks_ended_total": "Streams that ended because a later check found their token invalid.",
    "stream_failures_total": "Streams that ended because of an internal error; see the log.",
    "redis_reconnects_total": "Reconnects of the feed to Redis.",
    "rollbacks_total": "Times that Redis had lost the end of the log.",
    "feed_lag_seconds": "Time that the feed is behind the log; 0 is healthy.",
    "loop_blocked_seconds": "Longest time that the event loop was blocked in the last half minute or minute.",
    "loop_longest_blocked_seconds": "Longest time that the event loop was blocked since the start.",
    "loop_blocked_total": "Times that the event loop was blocked for more than 50 ms.",
    "job_passes_total": "Passes of jobs done by the job workers of this process.",
    "jobs_done_total": "Jobs finished by the job workers of this process.",
    "job_failures_total": "Passes that failed; they are retried.",
    "jobs_deferred_total": "First passes that failed within a request and were left to a job worker.",
    "repairs_total": "Faults that the automatic repair found and repaired.",
    "jobs_due": "Jobs that wait for a job worker, on all servers.",
    "jobs_parked": "Jobs that failed too often and wait for `stream-server repair`.",
    "log_number": "Number of the hub's last entry; equal on all servers, except for lag.",
    "log_invalid_rows_total": "Rows of the log that are not valid entries, counted at each read.",
    "redis_memory_bytes": "Memory that Redis uses.",
    "redis_memory_limit_bytes": "Memory that Redis may use: its maxmemory, else that of its machine.",
    "memory_alarm": "1 while writes are refused, because Redis is nearly full.",
    "log_entries": "Entries of the log when this process last looked.",
    "log_bytes": "Redis memory of the log when this process last measured it.",
    "log_age_seconds": "Age of the first entry of the log.",
    "log_trimmed_total": "Entries that this process removed from the log by age or size.",
    "ring_bytes": "Recent entries kept in memory for clients that reconnect.",
    "tasks": "Tasks of the event loop; growth without more streams is a leak.",
}

WATCHED_METRICS = tuple(WatchedMetric(f"stream_server_{name}", text) for name, text in _HELP_BY_NAME.items())
"""The metrics of hub, feed, jobs and log. :class:`HttpCounters` declares those of HTTP."""


class Metrics(Collector):
    """The metrics of one server process: the counters of HTTP in ``http``, and the values registered with `watch`."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._readers: dict[str, Callable[[], float | Mapping[str, float]]] = {}
        self.http = HttpCounters()
        process = Info("stream_server_process", "The process that answers: each worker has its own.", registry=registry)
        process.info({"pid": str(os.getpid()), "version": __version__})
        registry.register(self)

    def watch(self, name: str, read: Callable[[], float | Mapping[str, float]]) -> None:
        """Register the function ``read`` for the metric ``name``. Each request for the metrics calls ``read``.

        ``read`` returns a number, or a mapping from values of the label ``code`` to numbers. Raises KeyError if
        :data:`WATCHED_METRICS` does not contain ``name``.
        """
        if name not in {row.name for row in WATCHED_METRICS}:
            raise KeyError(name)
        self._readers[name] = read

    def collect(self) -> Iterable[Metric]:
        """Yield the present values of all metrics but that of the process. The Prometheus library calls this."""
        yield from self.http.collect()
        for row in WATCHED_METRICS:
            if row.name not in self._readers:
                continue
            family = CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily
            value = self._readers[row.name]()
            if isinstance(value, Mapping):
                metric = family(row.name, row.help, labels=["code"])
                for code, count in value.items():
                    metric.add_metric([code], count)
            else:
                metric = family(row.name, row.help, value=value)
            yield metric

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format. Its media type is :data:`CONTENT_TYPE`."""
        return generate_latest(self._registry)
