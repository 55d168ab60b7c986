"""The metrics of the relay, the process that hears Redis for all workers.

The relay only tells its numbers (`RelayState`). The worker that is asked for the metrics makes the text of them, so the
relay needs no library for it, and starts sooner.
"""

from collections.abc import Callable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_server.monitoring.host_state import RelayState
from stream_server.monitoring.worker_sockets import RELAY_SLOT


class _Row(NamedTuple):
    kind: str
    text: str
    read: Callable[[RelayState], float]


_ROWS = {
    "relay_up": _Row("gauge", "1 if the relay answered this scrape, 0 if it did not.", lambda s: int(_is_up(s))),
    "relay_links": _Row("gauge", "Workers that hear the relay.", lambda state: state.links),
    "relay_entries_total": _Row(
        "counter", "Entries that the relay handed on, each once for all workers.", lambda state: state.entries
    ),
    "relay_lost_total": _Row(
        "counter", "Lines that a worker was too slow to take; it read the log instead.", lambda state: state.lost
    ),
    "relay_bytes_total": _Row("counter", "Bytes handed to all workers together.", lambda state: state.bytes),
    "relay_waiting_bytes": _Row(
        "gauge", "Bytes that wait in the relay for the slowest worker.", lambda state: state.waiting_bytes
    ),
    "relay_lag_seconds": _Row(
        "gauge", "Time since the relay's subscription in Redis last worked; 0 is healthy.", lambda s: s.lag_ms / 1000
    ),
    "relay_memory_bytes": _Row("gauge", "Resident memory of the relay.", lambda state: state.memory_bytes),
    "relay_cpu_seconds_total": _Row(
        "counter", "Processor time of the relay since its start.", lambda state: state.cpu_seconds
    ),
}

RELAY_METRICS = tuple((f"stream_server_{name}", row.kind, row.text) for name, row in _ROWS.items())
"""Name, type and meaning of the metrics of the relay. Their label ``worker`` is 0."""


def render(state: RelayState) -> bytes:
    """Return the metrics of the relay in Prometheus' text format. One that did not answer has ``relay_up`` only."""
    registry = CollectorRegistry()
    registry.register(_Values(state))
    return generate_latest(registry)


class _Values(Collector):
    def __init__(self, state: RelayState) -> None:
        self._state = state

    def collect(self) -> list[Metric]:
        """Return the metrics. The Prometheus library calls this."""
        rows = list(_ROWS.items())
        return [self._metric(name, row) for name, row in (rows if _is_up(self._state) else rows[:1])]

    def _metric(self, name: str, row: _Row) -> Metric:
        family = CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily
        metric = family(f"stream_server_{name}", row.text, labels=["worker"])
        metric.add_metric([str(RELAY_SLOT)], row.read(self._state))
        return metric


def _is_up(state: RelayState) -> bool:
    return state.pid is not None
