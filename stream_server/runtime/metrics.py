"""The metrics: one table of names, and one registry per app in Prometheus' text format.

The hot paths count in plain integers. The registry reads them only when a client asks (:meth:`Metrics.watch`), so
counting adds no cost to a delivery.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, Info, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_server import __version__

CONTENT_TYPE = CONTENT_TYPE_LATEST
"""Media type of :meth:`Metrics.render`."""


class WatchedMetric(NamedTuple):
    """A metric whose value is read when a client asks for the metrics.

    Attributes:
        name: Prometheus name.
        kind: ``counter`` or ``gauge``.
        help: One sentence for the metrics page and the documentation.
        label: Name of the label that tells its values apart; empty if the metric has one value.
    """

    name: str
    kind: str
    help: str
    label: str = ""


WATCHED_METRICS: tuple[WatchedMetric, ...] = (
    WatchedMetric("stream_server_streams", "gauge", "Streams open now."),
    WatchedMetric("stream_server_streams_live", "gauge", "Streams that are at the head of the log."),
    WatchedMetric(
        "stream_server_streams_ended_total", "counter", "Streams that ended, by the code of their goodbye.", "code"
    ),
    WatchedMetric("stream_server_events_published_total", "counter", "Entries of the log handed to the hub."),
    WatchedMetric("stream_server_events_delivered_total", "counter", "Events written to streams, live or catching up."),
    WatchedMetric(
        "stream_server_events_malformed_total", "counter", "Published messages that were not valid entries; skipped."
    ),
    WatchedMetric(
        "stream_server_events_duplicate_total", "counter", "Published messages that had arrived before; skipped."
    ),
    WatchedMetric(
        "stream_server_events_recovered_total",
        "counter",
        "Entries read from the log because their message did not arrive.",
    ),
    WatchedMetric("stream_server_flushes_total", "counter", "Flushes: one write to every client with waiting frames."),
    WatchedMetric(
        "stream_server_slow_client_demotions_total",
        "counter",
        "Live clients that were too slow and went back to catching up.",
    ),
    WatchedMetric("stream_server_filter_failures_total", "counter", "Exceptions raised by filters."),
    WatchedMetric(
        "stream_server_subscriptions_without_keys",
        "gauge",
        "Subscriptions without index keys; each event is matched against all of them.",
    ),
    WatchedMetric(
        "stream_server_stream_failures_total",
        "counter",
        "Streams that ended because of an internal error; see the log.",
    ),
    WatchedMetric("stream_server_redis_reconnects_total", "counter", "Reconnects of the feed to Redis."),
    WatchedMetric("stream_server_rollbacks_total", "counter", "Times that Redis had lost the end of the log."),
    WatchedMetric("stream_server_feed_lag_seconds", "gauge", "Time that the feed is behind the log; 0 is healthy."),
    WatchedMetric(
        "stream_server_job_passes_total", "counter", "Batches of jobs done by the job workers of this process."
    ),
    WatchedMetric("stream_server_jobs_done_total", "counter", "Jobs finished by the job workers of this process."),
    WatchedMetric("stream_server_job_failures_total", "counter", "Batches that failed; they are retried."),
    WatchedMetric(
        "stream_server_jobs_deferred_total",
        "counter",
        "First batches that failed within a request and were left to a job worker.",
    ),
    WatchedMetric("stream_server_repairs_total", "counter", "Faults that the automatic repair found and repaired."),
    WatchedMetric("stream_server_jobs_due", "gauge", "Jobs that wait for a job worker, on all servers."),
    WatchedMetric(
        "stream_server_jobs_parked", "gauge", "Jobs that failed too often and wait for `stream-server repair`."
    ),
    WatchedMetric(
        "stream_server_log_number", "gauge", "Number of the hub's last entry; equal on all servers, except for lag."
    ),
    WatchedMetric(
        "stream_server_log_invalid_rows_total",
        "counter",
        "Rows of the log that are not valid entries, counted at each read.",
    ),
    WatchedMetric("stream_server_log_entries", "gauge", "Entries of the log when this process last looked."),
    WatchedMetric("stream_server_log_bytes", "gauge", "Redis memory of the log when this process last measured it."),
    WatchedMetric("stream_server_log_age_seconds", "gauge", "Age of the first entry of the log."),
    WatchedMetric(
        "stream_server_log_trimmed_total", "counter", "Entries that this process removed from the log by age or size."
    ),
    WatchedMetric("stream_server_ring_bytes", "gauge", "Recent entries kept in memory for clients that reconnect."),
    WatchedMetric("stream_server_tasks", "gauge", "Tasks of the event loop; growth without more streams is a leak."),
)
"""The metrics of hub, feed, jobs and log. :class:`Metrics` declares those of HTTP itself."""


class Metrics(Collector):
    """The metrics of one app."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._readers: dict[str, Callable[[], float]] = {}
        self._labelled_readers: dict[str, Callable[[], Mapping[str, float]]] = {}
        self.requests = Counter(
            "stream_server_http_requests_total", "Answers by method, route and status.",
            ("method", "route", "status"), registry=self._registry,
        )  # fmt: skip
        self.refusals = Counter(
            "stream_server_http_refusals_total", "Error answers by code.", ("code",), registry=self._registry
        )
        self.request_seconds = Histogram(
            "stream_server_http_request_seconds", "Time to answer a request, without streams.",
            ("route",), registry=self._registry,
        )  # fmt: skip
        process = Info(
            "stream_server_process", "The process that answers: each worker has its own.", registry=self._registry
        )
        process.info({"pid": str(os.getpid()), "version": __version__})
        self._registry.register(self)

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Show ``read()`` under a name of :data:`WATCHED_METRICS`; raises KeyError for any other name."""
        if name not in {row.name for row in WATCHED_METRICS}:
            raise KeyError(name)
        self._readers[name] = read

    def watch_labelled(self, name: str, read: Callable[[], Mapping[str, float]]) -> None:
        """Show each value of ``read()`` under its label.

        Raises KeyError if the table has no metric ``name`` with a label.
        """
        if name not in {row.name for row in WATCHED_METRICS if row.label}:
            raise KeyError(name)
        self._labelled_readers[name] = read

    def collect(self) -> Iterable[Metric]:
        """Return the watched metrics with their present values; the registry calls this."""
        for row in WATCHED_METRICS:
            family = CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily
            if row.name in self._readers:
                yield family(row.name, row.help, value=self._readers[row.name]())
            elif row.name in self._labelled_readers:
                each = family(row.name, row.help, labels=[row.label])
                for label, value in self._labelled_readers[row.name]().items():
                    each.add_metric([label], value)
                yield each

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format, of type :data:`CONTENT_TYPE`."""
        return generate_latest(self._registry)
