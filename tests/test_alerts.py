"""Each alert can fire from metrics that the server renders, and none fires while all is well."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_server.hub.group import DeliveryTimes
from stream_server.monitoring.incidents import LimitHits
from stream_server.monitoring.metrics import WATCHED_METRICS, Metrics, merge_texts
from tests.promql import Evaluation, Samples

ALERTS = Path(__file__).parents[1] / "docs" / "monitoring" / "alerts.yml"
(GROUP,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
RULES: dict[str, dict[str, Any]] = {rule["alert"]: rule for rule in GROUP["rules"]}

STEP_SECONDS = 60
CALM_STEPS, STEPS = 20, 40
"""Minutes before and after a change."""


class Site:
    """A server of two workers whose metrics a test changes. The second worker may be silent, or the whole server."""

    def __init__(self) -> None:
        well = {"ready": 1.0, "log_age_seconds": 86_400.0, "redis_memory_limit_bytes": 100.0}
        self.values: dict[str, float] = defaultdict(float, well)
        self.metrics, self.times, self.limits = Metrics(1), DeliveryTimes(), LimitHits()
        self.up = 1
        self.silent = False
        for row in WATCHED_METRICS:
            name = row.name.removeprefix("stream_server_")
            if not row.label:
                self.metrics.watch(row.name, partial(self.values.__getitem__, name))
        self.metrics.watch("stream_server_limits_met_total", self.limits.counts)
        self.metrics.watch_times(self.times)

    def work(self) -> None:
        """Do the work of a minute in which all is well."""
        self.metrics.http.requests["GET", "/v1/timelines/home", 200] += 600
        self.metrics.http.requests["GET", "/readyz", 503] += 600
        self.values["log_trimmed_total"] += 60
        self.times.add(0, 600)
        self.times.end_slice(1)

    def text(self) -> str:
        return merge_texts({1: self.metrics.render(), 2: None if self.silent else b""}).decode()


def value(**changed: float) -> Callable[[Site], None]:
    return lambda site: site.values.update(changed)


def count(name: str, a_minute: float = 1) -> Callable[[Site], None]:
    return lambda site: site.values.update({name: site.values[name] + a_minute})


def once(name: str) -> Callable[[Site], None]:
    return lambda site: site.values.update({name: 1})


def refuse(times: int) -> Callable[[Site], None]:
    def change(site: Site) -> None:
        site.metrics.http.requests["POST", "/v1/statuses", 503] += times

    return change


def fail_once(site: Site) -> None:
    site.metrics.http.refusals["internal"] = 1


def meet(limit: str, times: int) -> Callable[[Site], None]:
    def change(site: Site) -> None:
        for _ in range(times):
            site.limits.add(limit)

    return change


def meet_once(site: Site) -> None:
    if not site.limits.items():
        site.limits.add("connections_max")


def hold_once(site: Site) -> None:
    """Hold the event loop once, for a third of a second. The gauge forgets it after a minute."""
    site.values["loop_blocked_max_seconds"] = 0.0 if site.values["loop_blocked_total"] else 0.33
    site.values["loop_blocked_total"] = 1


def deliver_late(site: Site) -> None:
    site.times.add(0, 600)
    site.times.end_slice(3000)


FIRED_BY: dict[str, Callable[[Site], None]] = {
    "StreamServerDown": lambda site: setattr(site, "up", 0),
    "StreamServerNotReady": value(ready=0),
    "StreamServerUnavailable": refuse(60),
    "StreamServerWorkerDown": lambda site: setattr(site, "silent", True),
    "StreamServerEventsLate": value(feed_lag_seconds=3),
    "StreamServerDeliverySlow": deliver_late,
    "StreamServerRedisReconnects": count("redis_reconnects_total"),
    "StreamServerLogRolledBack": once("rollbacks_total"),
    "StreamServerWritesRefused": value(memory_alarm=1),
    "StreamServerWritesFail": refuse(1),
    "StreamServerReplicasMissing": value(write_replicas_missing=1),
    "StreamServerRedisFillsUp": value(redis_memory_bytes=81),
    "StreamServerJobsParked": value(jobs_parked=1),
    "StreamServerJobsWait": value(jobs_due=2000),
    "StreamServerArchiveFails": once("status_archive_failures_total"),
    "StreamServerLogTooShort": value(log_age_seconds=600),
    "StreamServerSlowClients": count("slow_client_demotions_total", 120),
    "StreamServerSubscriptionFallsBehind": value(subscriptions_endangered=1),
    "StreamServerWebhooksFail": value(webhooks_failing=1),
    "StreamServerWebhooksWait": value(webhooks_waiting=1),
    "StreamServerOverloaded": value(busy_ratio=0.95),
    "StreamServerLoopBlocked": hold_once,
    "StreamServerFailures": fail_once,
    "StreamServerForeignMessages": once("events_unsigned_total"),
    "StreamServerFull": meet_once,
    "StreamServerLimitsMet": meet("writes_per_user", 120),
}  # fmt: skip


def fired(rules: Iterable[dict[str, Any]], change: Callable[[Site], None]) -> set[str]:
    """Return the rules of which one holds for its time, as soon as one does. ``change`` is called every minute."""
    site, samples = Site(), Samples()
    held = Counter[str]()
    for step in range(-CALM_STEPS, STEPS):
        site.work()
        if step >= 0:
            change(site)
        samples.scrape(step * STEP_SECONDS, site.text(), up=site.up)
        for rule in rules:
            name = rule["alert"]
            held[name] = held[name] + 1 if Evaluation(rule["expr"], samples, step * STEP_SECONDS).value() else 0
        found = {rule["alert"] for rule in rules if held[rule["alert"]] > minutes(rule)}
        if found:
            return found
    return set()


def minutes(rule: dict[str, Any]) -> int:
    """Return for how many minutes a rule must hold before it fires; half a minute counts as one."""
    return int(rule.get("for", "0m").replace("30s", "1m").removesuffix("m"))


@pytest.mark.parametrize("name", RULES)
def test_each_alert_can_fire(name: str) -> None:
    assert fired([RULES[name]], FIRED_BY[name])


def test_no_alert_fires_while_all_is_well() -> None:
    assert fired(RULES.values(), lambda _: None) == set()
