"""What follows an attempt to deliver: longer waits, a pause after days, and an end at 410."""

import itertools

import pytest

from stream_server.events.position import Position
from stream_server.store.social.webhook_state import (
    MAX_WAIT_MS,
    PAUSE_AFTER_MS,
    DeliveryOutcome,
    Standing,
    Webhook,
    WebhookState,
    encode_outcomes,
    encode_webhook,
    parse_webhook,
    standing_after_failure,
)

END = Position(1_800_000_000_000, 0, 7)
NOW = 1_800_000_000_000


def failed(time_ms: int = NOW, status: int | None = 500) -> DeliveryOutcome:
    return DeliveryOutcome(time_ms, 5, 1, status)


def test_the_waits_double_up_to_five_minutes() -> None:
    standing, waits = Standing(), []
    for _ in range(10):
        standing = standing_after_failure(standing, failed(), END, NOW, 0)
        waits.append(standing.next_ms - NOW)
    assert waits == [
        *itertools.takewhile(lambda ms: ms < MAX_WAIT_MS, (2000 * 2**at for at in range(10))),
        *[MAX_WAIT_MS] * 2,
    ]
    assert (standing.failures, standing.failing_since_ms, standing.tried) == (10, NOW, END)
    shortest = standing_after_failure(standing, failed(), END, NOW, 1)
    assert shortest.next_ms - NOW == MAX_WAIT_MS * 0.8


def test_an_endpoint_that_fails_for_three_days_is_paused() -> None:
    first = standing_after_failure(Standing(), failed(), END, NOW, 0)
    later = NOW + PAUSE_AFTER_MS
    assert standing_after_failure(first, failed(later - 1), END, later - 1, 0).state is WebhookState.ACTIVE
    paused = standing_after_failure(first, failed(later), END, later, 0)
    assert (paused.state, paused.next_ms, paused.failing_since_ms) == (WebhookState.PAUSED, 0, NOW)


def test_an_endpoint_that_is_gone_is_disabled_at_once() -> None:
    assert standing_after_failure(Standing(), failed(status=410), END, NOW, 0).state is WebhookState.DISABLED


@pytest.mark.parametrize("status", [None, 100, 199, 300, 302, 400, 404, 410, 429, 500, 999])
def test_only_2xx_is_a_success(status: int | None) -> None:
    assert not failed(status=status).is_success
    assert failed(status=200).is_success
    assert failed(status=299).is_success


def test_a_webhook_is_kept_as_it_was() -> None:
    outcomes = (DeliveryOutcome(2, 3, 4, None, "no connection", 1), DeliveryOutcome(1, 2, 3, 204))
    standings = Standing(), Standing(WebhookState.PAUSED, 3, 4, 5, END), Standing(failures=9)
    webhook = Webhook("https://a.example/ü", 10, frozenset({"firehose"}), standings, outcomes)
    stored = f"{' '.join(one.line for one in standings)}\n".encode() + encode_outcomes(outcomes)
    assert parse_webhook(encode_webhook(webhook), stored) == webhook
    assert parse_webhook(None, None) is None
    assert webhook.standing == standings[1], "one that has stopped is worst"
