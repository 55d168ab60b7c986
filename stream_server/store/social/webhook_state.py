"""The state of a webhook, and what follows an attempt to deliver. Pure functions of values.

::

    ACTIVE -- fails for PAUSE_AFTER_MS, PUT --> PAUSED
      |  ^                                       |
      |  +------- PUT, with a challenge ---------+
      |  |                                       |
      +--+---- the endpoint answers 410 ---> DISABLED

A ``PUT`` with ``paused`` pauses. An active webhook either delivers, or fails: then it waits, longer after each failure,
up to :data:`MAX_WAIT_MS`.
"""

from enum import Enum
from typing import NamedTuple

import msgspec

from stream_server.events.position import Position
from stream_server.store.redis.protocol import parse_cursor

FIRST_WAIT_MS, MAX_WAIT_MS = 2000, 300_000
"""The wait in ms after the first failure, which doubles with each further one, and the longest wait."""

PAUSE_AFTER_MS = 3 * 86_400_000
"""Time in ms since the first of failures in a row, after which no further attempt is made."""

GONE = 410
"""The status by which an endpoint says that it wants no further requests (RFC 9110 §15.5.11)."""

MAX_BATCH = 100
"""Most events in one request."""


class WebhookState(Enum):
    """Whether the server delivers. A ``PUT`` of the subscription makes each state ACTIVE, or PAUSED if it says so."""

    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"


class DeliveryOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one request to an endpoint.

    Attributes:
        time_ms: When the request began, in ms since 1970.
        took_ms: How long it took, in ms.
        events: The number of events in it.
        status: The status of the answer. None without an answer.
        error: Why there is no answer, in words for its user. Empty with an answer.
        part: The part of a shared subscription whose events were in it. None for one that is not shared.
    """

    time_ms: int
    took_ms: int
    events: int
    status: int | None = None
    error: str = ""
    part: int | None = None

    @property
    def is_success(self) -> bool:
        """Whether the endpoint has taken the events: it has answered 2xx."""
        return self.status is not None and 200 <= self.status < 300


class Standing(NamedTuple):
    """How the deliveries of a webhook go, or those of one part of a shared subscription.

    Attributes:
        failures: The number of failures in a row.
        failing_since_ms: The time of the first of them, in ms since 1970, 0 without one.
        next_ms: When the next attempt is due, in ms since 1970, 0 for at once.
        tried: The end of the batch that failed. The next attempt ends there, so it has the same id.
    """

    state: WebhookState = WebhookState.ACTIVE
    failures: int = 0
    failing_since_ms: int = 0
    next_ms: int = 0
    tried: Position | None = None

    @property
    def line(self) -> str:
        """The words in the first line of Redis, see ``lua/webhook.lua``."""
        tried = "-" if self.tried is None else self.tried.cursor
        return f"{self.state.value} {self.failures} {self.failing_since_ms} {self.next_ms} {tried}"


class Webhook(NamedTuple):
    """Where to send the events of a subscription.

    Attributes:
        batch: Most events in one request.
        scopes: The scopes that the filters of the subscription need. The token of the ``PUT`` had them.
        standings: One, or that of each part of a shared subscription.
        outcomes: The outcomes of the last requests, newest first.
    """

    url: str
    batch: int
    scopes: frozenset[str]
    standings: tuple[Standing, ...] = (Standing(),)
    outcomes: tuple[DeliveryOutcome, ...] = ()

    @property
    def standing(self) -> Standing:
        """The standing of the part that does worst: one that has stopped, else the one with most failures."""
        return max(self.standings, key=lambda one: (one.state is not WebhookState.ACTIVE, one.failures))


class _StoredWebhook(msgspec.Struct):
    url: str
    batch: int
    scopes: tuple[str, ...]


def encode_webhook(webhook: Webhook) -> bytes:
    """Return the value of ``<name> webhook`` in Redis."""
    return msgspec.json.encode(_StoredWebhook(webhook.url, webhook.batch, tuple(sorted(webhook.scopes))))


def encode_outcomes(outcomes: tuple[DeliveryOutcome, ...]) -> bytes:
    """Return outcomes, newest first, as lines."""
    return b"\n".join(map(msgspec.json.encode, outcomes))


def parse_webhook(stored: bytes | None, standing: bytes | None) -> Webhook | None:
    """Return the webhook in two fields of a subscription, None for a subscription without one."""
    if stored is None or standing is None:
        return None
    found = msgspec.json.decode(stored, type=_StoredWebhook)
    line, *outcomes = standing.splitlines()
    words = line.split(b" ")
    standings = tuple(_parse_standing(*words[at : at + 5]) for at in range(0, len(words), 5))
    said = tuple(msgspec.json.decode(one, type=DeliveryOutcome) for one in outcomes)
    return Webhook(found.url, found.batch, frozenset(found.scopes), standings, said)


def _parse_standing(state: bytes, failures: bytes, since: bytes, next_ms: bytes, tried: bytes) -> Standing:
    position = None if tried == b"-" else parse_cursor(tried)
    return Standing(WebhookState(state.decode()), int(failures), int(since), int(next_ms), position)


def standing_after_failure(
    before: Standing, outcome: DeliveryOutcome, tried: Position | None, now_ms: int, spread: float
) -> Standing:
    """Return the standing after a request that was not taken.

    ``tried`` is the end of the batch. ``spread``, from 0 to 1, shortens the wait by up to a fifth, so that those that
    failed together do not come back together.
    """
    failures, since_ms = before.failures + 1, before.failing_since_ms or outcome.time_ms
    state = WebhookState.ACTIVE
    if outcome.status == GONE:
        state = WebhookState.DISABLED
    elif now_ms - since_ms >= PAUSE_AFTER_MS:
        state = WebhookState.PAUSED
    wait_ms = min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** min(failures - 1, 30)) * (1 - 0.2 * spread)
    next_ms = now_ms + round(wait_ms) if state is WebhookState.ACTIVE else 0
    return Standing(state, failures, since_ms, next_ms, tried)
