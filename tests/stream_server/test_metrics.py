"""The figures: each in the table, each app its own."""

import re
from functools import partial

import pytest

from stream_server.metrics import WATCHED, Metrics


def test_every_watched_figure_is_shown() -> None:
    """Under its own name and type, as it is at the moment of asking."""
    metrics = Metrics()
    figures = {row.name: float(i) for i, row in enumerate(WATCHED)}
    for row in WATCHED:
        metrics.watch(row.name, partial(figures.__getitem__, row.name))
    figures[WATCHED[0].name] = 99.0
    text = metrics.text().decode()
    for row in WATCHED:
        assert re.search(rf"^{row.name} {figures[row.name]}$", text, re.MULTILINE), row.name
        assert f"# TYPE {row.name} {row.kind}" in text


def test_a_figure_that_is_not_in_the_table_is_refused() -> None:
    """Names are documented before they are used."""
    with pytest.raises(KeyError):
        Metrics().watch("made_up", lambda: 0)


def test_two_apps_do_not_share_figures() -> None:
    """Each has a registry of its own: no global one is touched."""
    one, other = Metrics(), Metrics()
    one.refusals.labels("not_found").inc()
    assert b'code="not_found"' in one.text()
    assert b'code="not_found"' not in other.text()
