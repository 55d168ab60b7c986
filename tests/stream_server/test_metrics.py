"""The figures: each in the table, each app its own."""

import os
import re
from functools import partial

import pytest

from stream_server import __version__
from stream_server.runtime.metrics import WATCHED_METRICS, Metrics


def test_every_watched_figure_is_shown() -> None:
    """Under its own name and type, as it is at the moment of asking."""
    metrics = Metrics()
    figures = {row.name: float(i) for i, row in enumerate(WATCHED_METRICS)}
    for row in WATCHED_METRICS:
        metrics.watch(row.name, partial(figures.__getitem__, row.name))
    figures[WATCHED_METRICS[0].name] = 99.0
    text = metrics.render().decode()
    for row in WATCHED_METRICS:
        assert re.search(rf"^{row.name} {figures[row.name]}$", text, re.MULTILINE), row.name
        assert f"# TYPE {row.name} {row.kind}" in text


def test_a_figure_that_is_not_in_the_table_is_refused() -> None:
    """Names are documented before they are used."""
    with pytest.raises(KeyError):
        Metrics().watch("made_up", lambda: 0)


def test_a_figure_with_a_label_is_shown_part_by_part() -> None:
    """As many parts as there are when somebody asks; a figure without a label has none."""
    metrics = Metrics()
    ended = {"left": 2}
    metrics.watch_labelled("stream_server_streams_ended_total", lambda: ended)
    ended["too_slow"] = 1
    text = metrics.render().decode()
    assert 'stream_server_streams_ended_total{code="left"} 2.0' in text
    assert 'stream_server_streams_ended_total{code="too_slow"} 1.0' in text
    with pytest.raises(KeyError):
        metrics.watch_labelled("stream_server_streams", dict)


def test_two_apps_do_not_share_figures() -> None:
    """Each has a registry of its own: no global one is touched."""
    one, other = Metrics(), Metrics()
    one.refusals.labels("not_found").inc()
    assert b'code="not_found"' in one.render()
    assert b'code="not_found"' not in other.render()


def test_the_process_is_named() -> None:
    """Workers share a port, so a scrape has to say whose figures it holds."""
    text = Metrics().render().decode()
    assert f'stream_server_process_info{{pid="{os.getpid()}",version="{__version__}"}} 1.0' in text
