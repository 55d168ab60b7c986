"""The metrics follow the conventions of Prometheus, and the dashboard and the alerts use metrics that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from stream_server.hub.group import DeliveryTimes
from stream_server.monitoring.metrics import ALL_METRICS, WATCHED_METRICS, Metrics, merge_texts

ROOT = Path(__file__).parents[1]
DASHBOARD = ROOT / "docs" / "monitoring" / "grafana.json"
ALERTS = ROOT / "docs" / "monitoring" / "alerts.yml"
OPERATING = ROOT / "docs" / "guide" / "operating.md"

FOREIGN_UNITS = ("milliseconds", "minutes", "hours", "kilobytes", "megabytes", "percent", "ms", "kb", "mb", "secs")
"""Units that are no base units (https://prometheus.io/docs/practices/naming)."""

TYPE_WORDS = ("counter", "gauge", "histogram", "summary")

KINDS = {name: kind for name, kind, _ in ALL_METRICS}


def rendered() -> bytes:
    """Return the metrics of a process that has a value for each metric."""
    metrics = Metrics(2)
    for row in WATCHED_METRICS:
        metrics.watch(row.name, (lambda: {"x": 1.0}) if row.label else (lambda: 1.0))
    metrics.http.refusals["not_found"] += 1
    metrics.http.count("GET", "/", 200, 0.1)
    times = DeliveryTimes()
    times.add(0, 1)
    times.end_slice(1)
    metrics.watch_times(times)
    return metrics.render()


def expressions() -> Iterator[tuple[str, str]]:
    """Yield each expression of the dashboard and the alerts, with the title of its panel or alert."""
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for rule in rules():
        yield rule["alert"], rule["expr"]


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_the_table_has_exactly_the_metrics_that_are_rendered() -> None:
    """Each rendered metric has the name, type and help of its row."""
    families = list(text_string_to_metric_families(merge_texts({2: rendered()}).decode()))
    full = {family.name + ("_total" if family.type == "counter" else ""): family for family in families}
    kinds = {name: "gauge" if kind == "info" else kind for name, kind in KINDS.items()}
    assert {name: family.type for name, family in full.items()} == kinds
    assert {name: family.documentation for name, family in full.items()} == {
        name: text for name, _, text in ALL_METRICS
    }
    for name, family in full.items():
        assert {sample.labels["worker"] for sample in family.samples} == {"2"}, name


@pytest.mark.parametrize(("name", "kind", "text"), ALL_METRICS)
def test_the_names_follow_the_conventions(name: str, kind: str, text: str) -> None:
    """The names pass the rules of `promtool check metrics`."""
    assert re.fullmatch(r"(stream_server|process)(_[a-z]+)+", name)
    assert name.endswith("_total") == (kind == "counter")
    assert name.endswith("_info") == (kind == "info")
    assert kind != "histogram" or name.endswith("_seconds")
    assert not name.endswith(("_count", "_sum", "_bucket"))
    assert not set(FOREIGN_UNITS) & set(name.split("_"))
    assert not set(TYPE_WORDS) & set(name.split("_"))
    assert text.endswith(".")


def test_the_metrics_of_workers_are_one_text() -> None:
    """Each metric has its header once, and a silent worker is down and has no other sample."""
    text = merge_texts({1: rendered().replace(b'worker="2"', b'worker="1"'), 2: rendered(), 3: None}).decode()
    heads = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(heads) == len(set(heads)) == len(ALL_METRICS)
    up = re.findall(r'^stream_server_worker_up\{worker="(\d)"\} (\S+)$', text, re.MULTILINE)
    assert up == [("1", "1.0"), ("2", "1.0"), ("3", "0.0")]
    assert re.findall(r'^stream_server_tasks\{worker="(\d)"\}', text, re.MULTILINE) == ["1", "2"]
    assert list(text_string_to_metric_families(text))


@pytest.mark.parametrize(("title", "expression"), list(expressions()))
def test_the_expressions_use_metrics_that_exist_as_their_types_allow(title: str, expression: str) -> None:
    """`rate` and `increase` take counters and buckets, `histogram_quantile` takes buckets, and gauges are not rated."""
    names = re.findall(r"\b(?:stream_server|process)_\w+", expression)
    assert names or re.match(r"up\{", expression), title
    for name in names:
        base = name.removesuffix("_bucket")
        assert base in KINDS, f"{title}: {name}"
        is_rated = re.search(rf"(?:rate|increase)\({name}\b", expression) is not None
        assert is_rated == (KINDS[base] in {"counter", "histogram"}), f"{title}: {name}"
        assert (KINDS[base] == "histogram") == name.endswith("_bucket"), f"{title}: {name}"
    assert ("histogram_quantile" in expression) == any(name.endswith("_bucket") for name in names)
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing), title


def test_the_dashboard_shows_nearly_every_metric() -> None:
    shown = {name.removesuffix("_bucket") for _, text in expressions() for name in re.findall(r"\b\w+_\w+", text)}
    assert len(set(KINDS) & shown) > 0.7 * len(KINDS)


def test_the_panels_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_alert_leads_to_the_section_that_says_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"warning", "critical"}
    section = re.search(r"docs/guide/operating\.md#([\w-]+)$", rule["annotations"]["description"])
    assert section is not None
    headings = re.findall(r"^#+ (.*)$", OPERATING.read_text(encoding="utf-8"), re.MULTILINE)
    assert section[1] in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
