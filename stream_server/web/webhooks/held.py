"""One webhook, or part of one, that this process delivers: how far it is, and what has to be reported of it.

::

    HOLD --- an attempt fails, or the server stops ---> WAIT, STOP --- the report arrives ---> forgotten
      |                                                                                         ^
      +--- the report says `lost`: another process has it, or the subscription is gone ---------+
"""

import asyncio

import msgspec

from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub.disconnect import DisconnectReason
from stream_server.store.social.webhook_state import (
    DeliveryOutcome,
    Standing,
    WebhookState,
    standing_after_failure,
)
from stream_server.store.social.webhooks import ClaimedWebhook, Report, Step
from stream_server.web.webhooks.sender import Message

MAX_UNREPORTED = 20
"""Most outcomes that wait for a report. Redis keeps no more."""

SUSPENDED_WAIT_MS = 60_000
"""After this time in ms a webhook of a suspended user is tried again, and one whose user was deleted meanwhile."""


class HeldWebhook:
    """The state of a webhook while this process holds it.

    Attributes:
        claimed: The webhook as it was claimed.
        reached: Everything up to this position is delivered, or does not match.
        standing: How its deliveries go.
        step: What follows.
        step_ms: For how long, in ms, if the step is `Step.WAIT`.
        held_until: Until when the lease lasts at least, in seconds of the monotonic clock.
        is_sending: Whether a request runs.
        task: Reads and sends. It ends when the step is not `Step.HOLD` any more.
    """

    def __init__(self, claimed: ClaimedWebhook, held_until: float) -> None:
        webhook = claimed.subscription.webhook
        assert webhook is not None
        self.claimed = claimed
        self.url = webhook.url
        self.reached = claimed.cursor
        self.standing = webhook.standings[claimed.part or 0]
        self.step, self.step_ms = Step.HOLD, 0
        self.held_until = held_until
        self.is_sending = self._is_surplus = False
        self.task: asyncio.Task[None] | None = None
        self._renewed = asyncio.Event()
        self._unreported: list[DeliveryOutcome] = []
        self._is_changed = False

    @property
    def until(self) -> Position | None:
        """Where the next batch ends at the latest: where the one ended that failed. None for anywhere."""
        tried = self.standing.tried
        return tried if tried is not None and tried > self.reached else None

    def message(self, body: bytes, end: Position, events: int) -> Message:
        """Return the message with a batch.

        Its id is the name, the part of a shared subscription, and the cursor, without the delimiter of signatures.
        """
        name, part = self.claimed.subscription.name, self.claimed.part
        words = [name, end.cursor] if part is None else [name, str(part), end.cursor]
        return Message("/".join(words).replace(".", ":"), body, events)

    def reach(self, position: Position) -> None:
        """Note that nothing up to ``position`` has to be sent any more.

        If nothing is left of what failed, such as a post that was deleted since, the webhook does not fail any more.
        """
        if position > self.reached:
            self.reached = position
            self._is_changed = True
        if self.until is None and self.standing.failures:
            self.standing = Standing()
            self._is_changed = True

    def note(self, outcome: DeliveryOutcome, end: Position, now_ms: int, spread: float) -> None:
        """Note the outcome of the request with the batch that ends at ``end``."""
        outcome = msgspec.structs.replace(outcome, part=self.claimed.part)
        self._unreported = [*self._unreported, outcome][-MAX_UNREPORTED:]
        self._is_changed = True
        if outcome.is_success:
            self.standing = Standing()
            self.reach(end)
            if self._is_surplus:
                self.release()
            return
        self.standing = standing_after_failure(self.standing, outcome, end, now_ms, spread)
        is_active = self.standing.state is WebhookState.ACTIVE
        self.step = Step.WAIT if is_active else Step.STOP
        self.step_ms = max(1, self.standing.next_ms - now_ms)

    def end_reading(self, reason: DisconnectReason) -> None:
        """Note that the hub has ended the reading. After `resync` it begins anew."""
        if reason is not reasons.RESYNC:
            has_user = reason not in {reasons.SUSPENDED, reasons.ACCOUNT_DELETED}
            self.step, self.step_ms = Step.WAIT, 1 if has_user else SUSPENDED_WAIT_MS

    def release(self) -> None:
        """Let another process have the webhook at once, unless it waits or has stopped already."""
        if self.step is Step.HOLD:
            self.step, self.step_ms = Step.WAIT, 1

    def give_up(self) -> None:
        """Let another process have the part: at once, or when the request that runs has its answer."""
        self._is_surplus = True
        if not self.is_sending and self.task is not None:
            self.release()
            self.task.cancel()

    def needs_report(self, now: float, lease_seconds: float) -> bool:
        """Return whether there is something to report, or a third of the lease has passed."""
        return self._is_changed or self.step is not Step.HOLD or self.held_until - now < lease_seconds * 2 / 3

    def report(self, lease_ms: int) -> Report:
        """Return the report of what has happened. Call `reported` when it has arrived."""
        said, self._is_changed = tuple(reversed(self._unreported)), False
        step_ms = lease_ms if self.step is Step.HOLD else self.step_ms
        return Report(self.claimed, self.reached, self.step, step_ms, self.standing, said)

    def reported(self, report: Report, cursor: Position, held_until: float) -> bool:
        """Note that a report has arrived. Return whether the process still holds the webhook.

        ``cursor`` is that of the subscription, which its user may have raised.
        """
        self._unreported = [one for one in self._unreported if one not in report.outcomes]
        self.reached, self.held_until = max(self.reached, cursor), held_until
        self._renewed.set()
        return report.step is Step.HOLD

    def not_reported(self) -> None:
        """Note that a report has not arrived."""
        self._is_changed = True

    async def renewed(self) -> None:
        """Wait until a report has renewed the lease."""
        self._renewed.clear()
        await self._renewed.wait()
