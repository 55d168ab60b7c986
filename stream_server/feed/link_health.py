"""The health of the subscription to Redis: whether it works, since when it does not, and when to reconnect.

The log has one line for a loss, one for each other reason why it is not back, and one for the return.

`HeardLog` says until which moment the hub has certainly received all entries.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable

from stream_server.events.position import LOG_START, Position
from stream_server.store.redis.refusals import reason_for_operator

logger = logging.getLogger(__name__)

BACKOFF_SECONDS = (0.05, 2.0)
"""Shortest and longest wait in seconds before a reconnect. The wait doubles from one to the other, with jitter."""

MAX_FLAP_SECONDS = 0.5
"""Longest wait in seconds if the link was healthy before: Redis answers, so each attempt is cheap for it."""

STABLE_SECONDS = 5.0
"""A link that was healthy for this many seconds starts again with the shortest wait. A flapping link does not."""


class LinkLost(Exception):
    """The subscription ended or may miss entries. The feed reconnects and reads the missed entries from the log."""


class LinkHealth:
    """The health of one subscription.

    Attributes:
        healthy: Is set while the subscription works.
        reason: Why it does not work, for the operator. Empty while it works.
    """

    def __init__(self, random_source: random.Random, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._random_source = random_source
        self._monotonic = monotonic
        self._last_healthy_at = monotonic()
        self._healthy_since: float | None = None
        self._backoff_seconds = BACKOFF_SECONDS[0] / 2
        self.reason = ""
        self.healthy = asyncio.Event()

    def mark_healthy(self) -> None:
        """Record that the subscription works at this moment."""
        if self.reason:
            logger.info("subscribed to Redis again after %.1f s", self.lag_ms() / 1000)
            self.reason = ""
        self._last_healthy_at = self._monotonic()
        if self._healthy_since is None:
            self._healthy_since = self._last_healthy_at
        self.healthy.set()

    def mark_lost(self, error: Exception) -> float:
        """Record that ``error`` ended the subscription, or an attempt. Return the seconds before the next attempt."""
        reason = reason_for_operator(error)
        if self.healthy.is_set():
            logger.warning("subscription to Redis lost: %s", reason)
        elif reason != self.reason:
            logger.warning("no subscription to Redis yet: %s", reason)
        self.reason = reason
        was_healthy = self._healthy_since is not None
        was_stable = self._healthy_since is not None and self._monotonic() - self._healthy_since >= STABLE_SECONDS
        self._healthy_since = None
        self.healthy.clear()
        shortest, longest = BACKOFF_SECONDS[0], MAX_FLAP_SECONDS if was_healthy else BACKOFF_SECONDS[1]
        self._backoff_seconds = shortest if was_stable else min(longest, self._backoff_seconds * 2)
        return min(longest, self._backoff_seconds * self._random_source.uniform(0.5, 1.5))

    def lag_ms(self) -> int:
        """Return the milliseconds since the subscription was last known to work, or 0 while it works."""
        return 0 if self.healthy.is_set() else round((self._monotonic() - self._last_healthy_at) * 1000)


class HeardLog:
    """Remembers when the feed last compared the hub with the log, and where the log ended then.

    A comparison counts as soon as the hub has the entry at which the log ended. Until then the one before it counts.
    """

    def __init__(self, hub_head: Callable[[], Position]) -> None:
        """``hub_head`` returns the position of the last entry that the hub got."""
        self._hub_head = hub_head
        self._proven_until = -math.inf
        self._awaited_head = LOG_START
        self._awaited_check_at = -math.inf

    def record_check(self, started_at: float, log_head: Position) -> None:
        """Record that a check which started at ``started_at`` (seconds of a monotonic clock) found ``log_head``."""
        _ = self.until()  # the check before this one counts if its entries have arrived
        self._awaited_head, self._awaited_check_at = log_head, started_at

    def until(self) -> float:
        """Return the time up to which the hub has each entry of the log. All other entries were written later.

        The time is in seconds of the monotonic clock of :meth:`record_check`; it is minus infinity before a check.
        """
        if self._awaited_check_at > self._proven_until and self._hub_head() >= self._awaited_head:
            self._proven_until = self._awaited_check_at
        return self._proven_until

    def forget(self) -> None:
        """Forget all checks, because the link was lost or the hub's head was moved."""
        self._proven_until = self._awaited_check_at = -math.inf
