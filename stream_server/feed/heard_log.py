"""The moment until which a process has certainly received all entries of the log.

A silent link looks like a quiet log. So what a process remembers from the log holds only up to the last check that
compared its position with the head of the log in the primary Redis.
"""

import math
from collections.abc import Callable

from stream_server.events.position import LOG_START, Position


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
