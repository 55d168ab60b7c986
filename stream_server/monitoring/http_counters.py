"""The counters of HTTP in plain integers. A request pays for a dictionary look-up and an addition.

The counters of the Prometheus library take a lock for each addition, which took longer than the token check.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from stream_server.wire.errors import STATUS_BY_CODE

BUCKET_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Upper bounds of the histogram's buckets in seconds: those of the Prometheus library. Longer times are in one more."""

_REQUESTS = ("stream_server_http_requests_total", "counter", "Answers by method, route and status.")
_REFUSALS = ("stream_server_http_refusals_total", "counter", "Error answers by code.")
_DURATIONS = (
    "stream_server_http_request_duration_seconds", "histogram", "Time to answer a request, without streams, by route."
)  # fmt: skip

HTTP_METRICS = (_REQUESTS, _REFUSALS, _DURATIONS)
"""Name, type and meaning of the metrics of HTTP."""

_BUCKET_NAMES = (*map(str, BUCKET_SECONDS), "+Inf")


class RouteTimes:
    """The durations of the requests of one route."""

    __slots__ = ("counts", "sum_seconds")

    def __init__(self) -> None:
        self.counts = [0] * len(_BUCKET_NAMES)
        self.sum_seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one request."""
        self.counts[bisect_left(BUCKET_SECONDS, seconds)] += 1
        self.sum_seconds += seconds


class HttpCounters:
    """The answers by method, route and status, the refusals by code, and the times by route.

    Attributes:
        requests: Answers by method, route and status.
        refusals: Error answers by code.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.refusals: Counter[str] = Counter()
        self._times: dict[str, RouteTimes] = {}

    def add_time(self, route: str, seconds: float) -> None:
        """Count the time in seconds that one answer took."""
        times = self._times.get(route)
        if times is None:
            times = self._times[route] = RouteTimes()
        times.add(seconds)

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
        yield self._times_metric()

    def _times_metric(self) -> Metric:
        metric = HistogramMetricFamily(_DURATIONS[0], _DURATIONS[2], labels=["route"])
        for route, times in self._times.items():
            buckets = list(zip(_BUCKET_NAMES, map(float, accumulate(times.counts)), strict=True))
            metric.add_metric([route], buckets, times.sum_seconds)
        return metric
