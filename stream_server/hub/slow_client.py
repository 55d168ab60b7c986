"""How a client gets on: whether it takes bytes at all, and whether it gains on the head. Clocks are handed in."""

import math

CHECKS_PER_WINDOW = 8
"""So many looks a window, so that one burst of the log spoils one of them and not the whole window."""


class StallTimer:
    """Whether of what a client is to take nothing was taken for ``deadline`` seconds; slowly is not never."""

    __slots__ = ("_deadline_seconds", "_last_progress_at", "_lowest_unsent_bytes")

    def __init__(self, deadline_seconds: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._lowest_unsent_bytes = math.inf
        self._last_progress_at = 0.0

    def is_over(self, unsent_bytes: float, now: float) -> bool:
        """Ask while nothing more is written to the client, which has ``unsent_bytes`` bytes to take."""
        if unsent_bytes < self._lowest_unsent_bytes:
            self._lowest_unsent_bytes, self._last_progress_at = unsent_bytes, now
            return False
        return now - self._last_progress_at >= self._deadline_seconds


class PeerSilence:
    """For how long a client's machine has acknowledged nothing of what it was sent, as far as it was looked at."""

    __slots__ = ("_silent_since",)

    def __init__(self) -> None:
        self._silent_since = -math.inf

    def measure_seconds(self, reported_seconds: float, now: float) -> float:
        """In seconds, counted from a look on that found something to acknowledge; ``reported_seconds`` is what the socket says.

        What was written after an hour without a word is not unacknowledged for an hour.
        """
        if not reported_seconds:
            self._silent_since = -math.inf  # what is to be acknowledged at the next look will have been written later
        elif reported_seconds < now - self._silent_since:
            self._silent_since = now  # it has acknowledged something since, or this is the first look
        return max(0.0, now - self._silent_since) if reported_seconds else 0.0


class SlowClientDetector:
    """Whether a client that reads on is hopeless: far from the head, and nothing gained on it in a whole window.

    Gaining or holding its ground in one of the window's :data:`CHECKS_PER_WINDOW` is enough to stay, and who is near is never
    judged. Ground is the distance to the head, in entries scanned and not matched, so a filter that is seldom met is
    not taken for slowness; while the log stands still nobody loses any. A window in which nobody looked (the log was
    away, or the machine) says nothing.
    """

    __slots__ = ("_far_entries", "_last_check_at", "_last_distance", "_last_gain_at", "_window_seconds")

    def __init__(self, far_entries: int, window_seconds: float) -> None:
        self._far_entries = far_entries
        self._window_seconds = window_seconds
        self._last_distance: int | None = None
        self._last_gain_at = 0.0
        self._last_check_at = 0.0

    def set_limits(self, far_entries: int, window_seconds: float) -> None:
        """From now on so far is far, and the window so long."""
        self._far_entries = far_entries
        self._window_seconds = window_seconds

    def is_too_slow(self, behind_entries: int, now: float) -> bool:
        """Ask often: after each page, and while waiting for the client; ``behind_entries`` is in entries."""
        if behind_entries <= self._far_entries:
            self._last_distance = None
            return False
        if self._last_distance is None:
            self._last_distance, self._last_gain_at, self._last_check_at = behind_entries, now, now
        elif now - self._last_check_at >= self._window_seconds / CHECKS_PER_WINDOW:
            if behind_entries <= self._last_distance or now - self._last_check_at >= self._window_seconds:
                self._last_gain_at = now  # or nobody looked: that is no sign of slowness, and the window begins anew
            self._last_distance, self._last_check_at = behind_entries, now
        return now - self._last_gain_at >= self._window_seconds
