"""The deliveries of one process: it claims webhooks that are due, serves each in a task, and reports.

The acks, outcomes and leases of all webhooks of the process go to Redis together, once a second at most. A process that
dies reports nothing: when its leases end, others claim its webhooks, and repeat what was not acked.
"""

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from filters.error import ParameterError
from stream_server.errors import ApiError, Unavailable
from stream_server.events.position import Position
from stream_server.store.jobs.workers import none_if_unavailable
from stream_server.store.social.webhook_state import DeliveryOutcome, WebhookState
from stream_server.store.social.webhooks import ClaimedWebhook, Step, Webhooks
from stream_server.web.webhooks.batches import Batch
from stream_server.web.webhooks.held import HeldWebhook
from stream_server.web.webhooks.sender import Sender

logger = logging.getLogger(__name__)

MAX_HELD = 1000
"""Most webhooks of one process. Each has a task, and a connection to its endpoint."""

CLAIMED_AT_ONCE = 32
"""Most webhooks of one claim, so that other processes get some, too."""

CLAIM_SECONDS = (0.5, 1.0)
"""Shortest and longest time between two claims. It is random, so that processes share the webhooks."""

REPORT_SECONDS = 1.0
"""Shortest time in seconds between two reports."""

PACE_SECONDS = 0.1
"""Shortest time in seconds from one request of a webhook to the next, so that events close together share one.

A request takes 0.4 to 1 ms of processor time, however few events are in it. So the ten webhooks of a user take
at most a tenth of a core, and half a core if each answer is as costly as an endpoint can make it (`answers`).
"""

LEASE_PARTS, LEASE_SECONDS = 3, 3.0
"""A lease lasts this many times as long as a request may take, and some seconds for reports that are late.

Its first third may pass without a report.
"""

LAST_SECONDS = 0.5
"""Longest time in seconds for the last report of a process that stops."""

ReadBatch = Callable[[ClaimedWebhook, Position, Position | None, float], Awaitable[Batch]]
"""Reads the next batch of a webhook: see `read_batch`, without the app."""


class Deliveries:
    """Delivers webhooks.

    Attributes:
        held: The webhooks that this process holds, by the names of their readers.
        failing: The number of webhooks that fail, of all users on all servers, at the last claim.
        waiting: The number of those that no process has room for.
    """

    def __init__(
        self, webhooks: Webhooks, sender: Sender, read_batch: ReadBatch, *,
        timeout_seconds: float, read_seconds: float, is_on: bool, is_stopping: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic, unix_time: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """Without an event, the cursor of a webhook rises every ``read_seconds``. A request ends after a timeout."""
        self.held: dict[str, HeldWebhook] = {}
        self.failing = self.waiting = 0
        self._process = secrets.token_hex(8)
        self._webhooks = webhooks
        self._sender = sender
        self._read_batch = read_batch
        self._timeout_seconds, self._read_seconds = timeout_seconds, read_seconds
        self._lease_seconds = LEASE_PARTS * timeout_seconds + LEASE_SECONDS
        self._is_on = is_on
        self._is_stopping = is_stopping
        self._has_ended = asyncio.Event()
        self._monotonic, self._unix_time = monotonic, unix_time

    async def run(self) -> None:
        """Deliver until cancelled. Then give all webhooks back, and close the connections."""
        try:
            if not self._is_on:
                await asyncio.Event().wait()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._claim_forever(group), name="webhooks: claims")
                group.create_task(self._report_forever(), name="webhooks: reports")
        finally:
            for held in self.held.values():
                held.release()
            with suppress(ApiError, TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._report_due()
            await self._sender.close()

    async def _claim_forever(self, group: asyncio.TaskGroup) -> None:
        while True:
            await none_if_unavailable(lambda: self._claim(group))
            await asyncio.sleep(random.uniform(*CLAIM_SECONDS))

    async def _claim(self, group: asyncio.TaskGroup) -> None:
        most = min(CLAIMED_AT_ONCE, MAX_HELD - len(self.held))
        if self._is_stopping():
            return
        held_until = self._monotonic() + self._lease_seconds
        found = await self._webhooks.claim(self._process, self._lease_ms, most)
        self.failing, self.waiting = found.failing, found.waiting
        for claimed in found.claimed:
            held = self.held[claimed.reader] = HeldWebhook(claimed, held_until)
            held.task = group.create_task(self._serve(held), name="webhook")

    @property
    def _lease_ms(self) -> int:
        return round(self._lease_seconds * 1000)

    async def _serve(self, held: HeldWebhook) -> None:
        """Read and send until the webhook waits, stops, or is lost."""
        try:
            while held.step is Step.HOLD:
                try:
                    await self._deliver(held)
                except Unavailable:
                    await asyncio.sleep(REPORT_SECONDS)  # Redis is away: the endpoint has nothing to do with it
        except (ApiError, ParameterError) as error:
            self._note(held, self._own_failure(f"the subscription cannot be read: {error}"), held.reached)
        except Exception:
            logger.exception("a webhook failed because of a fault of the server")
            self._note(held, self._own_failure("a fault of the server"), held.reached)
        finally:
            self._has_ended.set()

    async def _deliver(self, held: HeldWebhook) -> None:
        """Send the next batch. Raises ApiError or ParameterError if it cannot be read."""
        batch = await self._read_batch(held.claimed, held.reached, held.until, self._read_seconds)
        if batch.reason is not None:
            held.end_reading(batch.reason)
        elif not batch.events:
            held.reach(batch.end)
        elif not (signing := await self._webhooks.get_holders_secrets(held.claimed)):
            held.release()  # the webhook was changed or removed; the report will say so
        elif held.held_until - self._monotonic() < self._timeout_seconds:
            await held.renewed()  # no two processes may send at the same time; then what is visible is read anew
        else:
            message = held.message(batch.body(held.claimed), batch.end, len(batch.events))
            next_at, held.is_sending = self._monotonic() + PACE_SECONDS, True
            sent = await self._sender.send(held.claimed.uid, held.url, message, signing)
            held.is_sending = False
            self._note(held, sent.outcome, batch.end)
            if held.step is Step.HOLD:
                await asyncio.sleep(max(0.0, next_at - self._monotonic()))

    def _note(self, held: HeldWebhook, outcome: DeliveryOutcome, end: Position) -> None:
        held.note(outcome, end, round(self._unix_time() * 1000), random.random())
        if held.standing.state is not WebhookState.ACTIVE:
            why = outcome.error or f"status {outcome.status}"
            logger.warning(
                "the webhook of subscription %s of user %s is %s: %s",
                held.claimed.subscription.name, held.claimed.uid, held.standing.state.value, why,
            )  # fmt: skip

    async def _report_forever(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(REPORT_SECONDS):
                    await self._has_ended.wait()
            self._has_ended.clear()
            await none_if_unavailable(self._report_due)
            await asyncio.sleep(REPORT_SECONDS / 2)

    async def _report_due(self) -> None:
        """Report what has happened. Raises `Unavailable` if Redis does not answer; then the next report says it."""
        now = self._monotonic()
        due = [held for held in self.held.values() if held.needs_report(now, self._lease_seconds)]
        if not due:
            return
        reports = [held.report(self._lease_ms) for held in due]
        try:
            replies = await self._webhooks.report(reports)
        except BaseException:
            for held in due:
                held.not_reported()
            raise
        for held, report, reply in zip(due, reports, replies, strict=True):
            is_held = reply is not None and held.reported(report, reply.cursor, now + self._lease_seconds)
            if not is_held:
                del self.held[held.claimed.reader]
            elif reply is not None and reply.is_surplus:
                held.give_up()
            if reply is None and held.task is not None:
                held.task.cancel()

    def _own_failure(self, error: str) -> DeliveryOutcome:
        """Return the outcome of an attempt in which nothing was sent."""
        return DeliveryOutcome(round(self._unix_time() * 1000), 0, 0, error=error[:200])
