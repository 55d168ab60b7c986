"""How a client gets on: whether it takes bytes at all, and whether it gains on the head. Clocks are handed in."""

import math

LOOKS = 8
"""So many looks a window, so that one burst of the log spoils one of them and not the whole window."""


class Stall:
    """Whether of what a client is to take nothing was taken for ``deadline`` seconds; slowly is not never."""

    __slots__ = ("_deadline", "_least", "_since")

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._least = math.inf
        self._since = 0.0

    def over(self, unsent: float, now: float) -> bool:
        """Ask while nothing more is written to the client, which has ``unsent`` bytes to take."""
        if unsent < self._least:
            self._least, self._since = unsent, now
            return False
        return now - self._since >= self._deadline


class Silence:
    """For how long a client's machine has acknowledged nothing of what it was sent, as far as it was looked at."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = -math.inf

    def lasted(self, silence: float, now: float) -> float:
        """In seconds, counted from a look on that found something to acknowledge; ``silence`` is what the socket says.

        What was written after an hour without a word is not unacknowledged for an hour.
        """
        if not silence:
            self._since = -math.inf  # what is to be acknowledged at the next look will have been written later
        elif silence < now - self._since:
            self._since = now  # it has acknowledged something since, or this is the first look
        return max(0.0, now - self._since) if silence else 0.0


class Pace:
    """Whether a client that reads on is hopeless: far from the head, and nothing gained on it in a whole window.

    Gaining or holding its ground in one of the window's :data:`LOOKS` is enough to stay, and who is near is never
    judged. Ground is the distance to the head, in entries scanned and not matched, so a filter that is seldom met is
    not taken for slowness; while the log stands still nobody loses any. A window in which nobody looked (the log was
    away, or the machine) says nothing.
    """

    __slots__ = ("_behind", "_far", "_gained_at", "_looked_at", "_window")

    def __init__(self, far_entries: int, window_seconds: float) -> None:
        self._far = far_entries
        self._window = window_seconds
        self._behind: int | None = None
        self._gained_at = 0.0
        self._looked_at = 0.0

    def judge_by(self, far_entries: int, window_seconds: float) -> None:
        """From now on so far is far, and the window so long."""
        self._far = far_entries
        self._window = window_seconds

    def hopeless(self, behind: int, now: float) -> bool:
        """Ask often: after each page, and while waiting for the client; ``behind`` is in entries."""
        if behind <= self._far:
            self._behind = None
            return False
        if self._behind is None:
            self._behind, self._gained_at, self._looked_at = behind, now, now
        elif now - self._looked_at >= self._window / LOOKS:
            if behind <= self._behind or now - self._looked_at >= self._window:
                self._gained_at = now  # or nobody looked: that is no sign of slowness, and the window begins anew
            self._behind, self._looked_at = behind, now
        return now - self._gained_at >= self._window
