"""The metrics: each in the table, with one registry for each app."""

import os
import re
from functools import partial

import pytest

from stream_server.build import full_version
from stream_server.monitoring.metrics import WATCHED_METRICS, Metrics


def test_each_watched_metric_has_its_name_type_and_current_value() -> None:
    metrics = Metrics()
    figures = {row.name: float(i) for i, row in enumerate(WATCHED_METRICS)}
    for row in WATCHED_METRICS:
        metrics.watch(row.name, partial(figures.__getitem__, row.name))
    figures[WATCHED_METRICS[0].name] = 99.0
    text = metrics.render().decode()
    for row in WATCHED_METRICS:
        assert re.search(rf'^{row.name}{{worker="1"}} {figures[row.name]}$', text, re.MULTILINE), row.name
        assert f"# TYPE {row.name} {row.kind}" in text


def test_a_metric_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(KeyError):
        Metrics().watch("made_up", lambda: 0)


def test_a_labelled_metric_has_one_line_for_each_label() -> None:
    metrics = Metrics()
    ended = {"left": 2}
    metrics.watch("stream_server_streams_ended_total", lambda: ended)
    ended["too_slow"] = 1
    text = metrics.render().decode()
    assert 'stream_server_streams_ended_total{code="left",worker="1"} 2.0' in text
    assert 'stream_server_streams_ended_total{code="too_slow",worker="1"} 1.0' in text


def test_requests_are_counted_by_method_route_and_status_and_timed_by_route() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.005, 0.3, 60.0):
        metrics.http.count("GET", "/v1/x", 200, seconds)
    text = metrics.render().decode()
    assert 'stream_server_http_requests_total{method="GET",route="/v1/x",status="200",worker="1"} 4.0' in text
    bucket = r'^stream_server_http_request_duration_seconds_bucket\{le="(.*)",route="/v1/x",worker="1"\} (.*)$'
    buckets = re.findall(bucket, text, re.MULTILINE)
    counts = {float(bound): float(count) for bound, count in buckets}
    assert counts | {0.005: 2, 0.25: 2, 0.5: 3, 10.0: 3, float("inf"): 4} == counts
    assert 'stream_server_http_request_duration_seconds_count{route="/v1/x",worker="1"} 4.0' in text
    assert 'stream_server_http_request_duration_seconds_sum{route="/v1/x",worker="1"} 60.306' in text
    assert "# TYPE stream_server_http_request_duration_seconds histogram" in text


def test_the_metrics_name_their_process() -> None:
    text = Metrics().render().decode()
    assert f'stream_server_process_info{{pid="{os.getpid()}",version="{full_version()}",worker="1"}} 1.0' in text
