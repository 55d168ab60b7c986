"""How a process holds webhooks: under a lease that is long enough, until it is lost, and not beyond its own end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from stream_server.errors import BadRequest, Unavailable
from stream_server.events.position import Position
from stream_server.store.social.subscriptions import NamedSubscription
from stream_server.store.social.webhook_state import DeliveryOutcome, Standing, Webhook, WebhookState
from stream_server.store.social.webhooks import ClaimedWebhook, Claims, Report, Reported, Step
from stream_server.web.webhooks import deliveries
from stream_server.web.webhooks.batches import Batch
from stream_server.web.webhooks.deliveries import Deliveries
from stream_server.web.webhooks.sender import Message, Sent
from tests.waiting import eventually

START, END = Position(1_800_000_000_000, 0, 1), Position(1_800_000_000_000, 1, 2)
TIMEOUT = 10.0
LEASE = 3 * TIMEOUT + 3.0
ACTIVE = Standing()


class Store:
    """Redis, with one webhook. ``reports`` are those that arrived; ``is_lost`` refuses them."""

    def __init__(self, standing: Standing = ACTIVE) -> None:
        webhook = Webhook("https://a.example/", 10, frozenset(), (standing,))
        kept = NamedSubscription("work", {"track": "tea"}, START, 1, 1, webhook=webhook)
        self.waiting = [ClaimedWebhook("7", "one.1", kept)]
        self.reports: list[Report] = []
        self.refused = 0
        self.is_away = self.is_lost = self.is_surplus = False

    async def claim(self, _: str, __: int, most: int) -> Claims:
        given, self.waiting = self.waiting[:most], self.waiting[most:]
        return Claims(given, 0, len(self.waiting))

    async def get_holders_secrets(self, _: ClaimedWebhook) -> tuple[str, ...]:
        return () if self.is_lost else ("whsec_AAAA",)

    async def report(self, reports: Sequence[Report]) -> list[Reported | None]:
        if self.is_away:
            self.refused += 1
            raise Unavailable("away")
        self.reports += reports
        return [None if self.is_lost else Reported(report.cursor, self.is_surplus) for report in reports]


class Endpoint:
    """A sender. Each request waits for ``may_answer``."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.given_up = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def send(self, _: str, __: str, message: Message, ___: Sequence[str]) -> Sent:
        self.sent.append(message)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return Sent(DeliveryOutcome(1, 1, message.events, 204))

    async def close(self) -> None:
        """Nothing is open."""


class Reading:
    """Reads one batch, and then nothing more. ``delay`` is how long the first read takes, in seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.now = self.delay = 0.0
        self.events = [b"{}"]
        self.error: Exception | None = None

    async def __call__(self, _: ClaimedWebhook, after: Position, *__: object) -> Batch:
        self.count += 1
        if self.error is not None:
            raise self.error
        if after >= END:
            await asyncio.Event().wait()
        self.now, self.delay = self.now + self.delay, 0.0
        return Batch(self.events, END, has_more=False)


@asynccontextmanager
async def running(store: Store, endpoint: Endpoint, reading: Reading) -> AsyncIterator[Deliveries]:
    made = Deliveries(
        cast("Any", store), cast("Any", endpoint), reading, timeout_seconds=TIMEOUT, read_seconds=15.0, is_on=True,
        is_stopping=lambda: False, monotonic=lambda: reading.now, unix_time=lambda: 1_800_000_000.0,
    )  # fmt: skip
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "REPORT_SECONDS", 0.01)
    monkeypatch.setattr(deliveries, "CLAIM_SECONDS", (0.01, 0.01))
    monkeypatch.setattr(deliveries, "PACE_SECONDS", 0.0)


async def test_nothing_is_sent_under_a_lease_that_may_end_before_the_answer() -> None:
    """The events are read anew when the lease is long enough, because something may have been hidden meanwhile."""
    store, endpoint, reading = Store(), Endpoint(), Reading()
    store.is_away, reading.delay = True, LEASE - TIMEOUT + 0.1
    async with running(store, endpoint, reading):
        await eventually(lambda: store.refused > 2)
        assert (reading.count, endpoint.sent) == (1, [])
        store.is_away = False
        await eventually(lambda: bool(endpoint.sent))
        assert reading.count >= 2, "it has read anew"


async def test_a_lost_webhook_is_sent_no_further_and_its_request_is_given_up() -> None:
    store, endpoint, reading = Store(), Endpoint(), Reading()
    endpoint.may_answer.clear()
    async with running(store, endpoint, reading) as made:
        await eventually(lambda: bool(endpoint.sent))
        store.is_lost, reading.now = True, LEASE / 2
        await eventually(lambda: not made.held)
        await eventually(lambda: endpoint.given_up == 1)
        assert store.reports[-1].cursor == START, "nothing was acked"


async def test_a_process_takes_no_more_webhooks_than_it_can_and_knows_those_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliveries, "MAX_HELD", 1)
    store, endpoint, reading = Store(), Endpoint(), Reading()
    store.waiting *= 2
    async with running(store, endpoint, reading) as made:
        await eventually(lambda: len(made.held) == made.waiting == 1)
        store.is_lost, reading.now = True, LEASE / 2
        await eventually(lambda: made.waiting == 0)


async def test_nothing_is_sent_once_a_webhook_is_lost_though_no_report_has_said_so() -> None:
    store, endpoint, reading = Store(), Endpoint(), Reading()
    store.is_lost = True
    async with running(store, endpoint, reading) as made:
        await eventually(lambda: reading.count == 1 and not made.held)
    assert endpoint.sent == []


async def test_a_webhook_has_a_pace_so_events_that_come_close_together_share_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliveries, "PACE_SECONDS", 1e6)
    store, endpoint, reading = Store(), Endpoint(), Reading()
    async with running(store, endpoint, reading):
        await eventually(lambda: any(report.cursor == END for report in store.reports))
        assert (reading.count, len(endpoint.sent)) == (1, 1), "it reads on later"


async def test_a_webhook_whose_failed_events_are_gone_fails_no_more() -> None:
    store, endpoint, reading = Store(Standing(WebhookState.ACTIVE, 3, 1, 2, END)), Endpoint(), Reading()
    reading.events = []
    async with running(store, endpoint, reading):
        await eventually(lambda: any(report.cursor == END for report in store.reports))
    assert store.reports[-1].standing == Standing()
    assert endpoint.sent == []


async def test_a_part_too_many_is_given_up_when_its_request_has_its_answer() -> None:
    store, endpoint, reading = Store(), Endpoint(), Reading()
    store.is_surplus = True
    endpoint.may_answer.clear()
    async with running(store, endpoint, reading) as made:
        await eventually(lambda: bool(endpoint.sent))
        reading.now = LEASE / 2
        await eventually(lambda: bool(store.reports))
        assert store.reports[-1].step is Step.HOLD
        endpoint.may_answer.set()
        await eventually(lambda: not made.held)
    assert (store.reports[-1].step, store.reports[-1].cursor, endpoint.given_up) == (Step.WAIT, END, 0)


async def test_a_part_too_many_is_given_up_at_once_while_nothing_is_sent() -> None:
    store, endpoint, reading = Store(), Endpoint(), Reading()
    async with running(store, endpoint, reading) as made:
        await eventually(lambda: reading.count == 2)
        store.is_surplus, reading.now = True, LEASE / 2
        await eventually(lambda: not made.held)
    assert (store.reports[-1].step, store.reports[-1].cursor) == (Step.WAIT, END)


async def test_a_process_that_stops_gives_its_webhooks_back_with_what_was_answered() -> None:
    store, endpoint, reading = Store(), Endpoint(), Reading()
    async with running(store, endpoint, reading):
        await eventually(lambda: reading.count == 2)
    last = store.reports[-1]
    assert (last.step, last.cursor) == (Step.WAIT, END)
    assert [one.events for report in store.reports for one in report.outcomes] == [1]


async def test_what_was_not_reported_is_reported_again() -> None:
    store, endpoint, reading = Store(), Endpoint(), Reading()
    store.is_away = True
    async with running(store, endpoint, reading):
        await eventually(lambda: store.refused > 2 and reading.count == 2)
        store.is_away = False
        await eventually(lambda: bool(store.reports))
        assert store.reports[0].cursor == END
        assert store.reports[0].outcomes


@pytest.mark.parametrize("error", [BadRequest("no such filter"), RuntimeError("a fault")])
async def test_a_subscription_that_cannot_be_read_is_tried_again_later(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store, endpoint, reading = Store(), Endpoint(), Reading()
    reading.error = error
    async with running(store, endpoint, reading):
        await eventually(lambda: bool(store.reports))
    (report,) = store.reports
    assert (report.step, report.standing.state, report.standing.failures) == (Step.WAIT, WebhookState.ACTIVE, 1)
    assert ("no such filter" in report.outcomes[0].error) is isinstance(error, BadRequest)
    assert ("a fault of the server" in caplog.text) is isinstance(error, RuntimeError)
    assert endpoint.sent == []
