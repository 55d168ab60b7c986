"""Timers for slow clients: does a client take bytes at all, and does it fall further behind? Callers pass the time."""

import math

CHECKS_PER_WINDOW = 8
"""Checks in one window. A burst of the log then spoils one check and not the whole window."""


class StallTimer:
    """Tells whether a client has taken no byte for ``deadline_seconds``. A slow but moving client is not stalled."""

    __slots__ = ("_deadline_seconds", "_last_progress_at", "_lowest_unsent_bytes")

    def __init__(self, deadline_seconds: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._lowest_unsent_bytes = math.inf
        self._last_progress_at = 0.0

    def is_over(self, unsent_bytes: float, now: float) -> bool:
        """Return whether the client has taken no byte for the whole deadline. ``now`` is the present time in seconds.

        Call it often, and write nothing to the client between two calls: progress shows only as fewer unsent bytes.
        """
        if unsent_bytes < self._lowest_unsent_bytes:
            self._lowest_unsent_bytes, self._last_progress_at = unsent_bytes, now
            return False
        return now - self._last_progress_at >= self._deadline_seconds


class PeerSilence:
    """Measures for how long a peer has acknowledged nothing although there were bytes to acknowledge."""

    __slots__ = ("_silent_since",)

    def __init__(self) -> None:
        self._silent_since = -math.inf

    def measure_seconds(self, reported_seconds: float, now: float) -> float:
        """Return for how many seconds the peer is silent, counted from the first call that found unacknowledged bytes.

        ``reported_seconds`` is the age of the last acknowledgement, as the kernel reports it; 0 if all bytes are
        acknowledged. It may exceed the silence: directly after a write that follows an idle hour, it is an hour.
        """
        if not reported_seconds:
            self._silent_since = -math.inf  # bytes that the next call finds unacknowledged were written later
        elif reported_seconds < now - self._silent_since:
            self._silent_since = now  # the peer acknowledged something since, or this is the first call
        return max(0.0, now - self._silent_since) if reported_seconds else 0.0


class SlowClientDetector:
    """Tells whether a client that catches up is too slow: far behind the head, and farther at each check of a window.

    A window has `CHECKS_PER_WINDOW` checks. A check at which the distance has not grown begins a new window. A client
    near the head is never too slow. The distance counts scanned entries and not matched ones, so a filter that rarely
    matches is not mistaken for slowness. Time in which no check was possible (Redis or the machine was away) does not
    count.
    """

    __slots__ = ("_far_entries", "_last_check_at", "_last_distance", "_last_gain_at", "_window_seconds")

    def __init__(self, far_entries: int, window_seconds: float) -> None:
        """A client with ``far_entries`` to the head is far, and may fall farther back for ``window_seconds``."""
        self._far_entries = far_entries
        self._window_seconds = window_seconds
        self._last_distance: int | None = None
        self._last_gain_at = 0.0
        self._last_check_at = 0.0

    def is_too_slow(self, behind_entries: int, now: float) -> bool:
        """Record the client's distance to the head, in entries, at ``now`` (seconds). Return whether it is too slow."""
        if behind_entries <= self._far_entries:
            self._last_distance = None
            return False
        if self._last_distance is None:
            self._last_distance, self._last_gain_at, self._last_check_at = behind_entries, now, now
        elif now - self._last_check_at >= self._window_seconds / CHECKS_PER_WINDOW:
            if behind_entries <= self._last_distance or now - self._last_check_at >= self._window_seconds:
                self._last_gain_at = now  # no growth, or no check in a window, which proves nothing: restart the window
            self._last_distance, self._last_check_at = behind_entries, now
        return now - self._last_gain_at >= self._window_seconds
