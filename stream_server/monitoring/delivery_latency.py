"""The metric of the time from the log to the sockets of live clients, by the kind of filter."""

from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from stream_server.hub.delivery_times import BUCKET_SECONDS, DeliveryTimes

DELIVERY_LATENCY = (
    "stream_server_delivery_latency_seconds", "histogram",
    "Time from Redis' log to the sockets of live streams, by filter.",
)  # fmt: skip
"""Name, type and meaning of the metric."""

_BUCKET_NAMES = (*map(str, BUCKET_SECONDS), "+Inf")


def latency_metric(times: DeliveryTimes) -> Metric:
    """Return the metric with its present values. A kind of filter that had no event yet is left out."""
    name, _, text = DELIVERY_LATENCY
    metric = HistogramMetricFamily(name, text, labels=["filter"])
    for kind, counts, seconds in times.histograms():
        if any(counts):
            metric.add_metric([kind], list(zip(_BUCKET_NAMES, map(float, accumulate(counts)), strict=True)), seconds)
    return metric
