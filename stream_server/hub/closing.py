"""Why a stream ends: a code for programs, a sentence for people, and whether to come back."""

import random
from typing import NamedTuple

SOONEST_SECONDS = 0.1
"""Nobody is told to return at once: who is stopping may still be the one who answers."""

GOLDEN = (5**0.5 - 1) / 2
"""Steps of this length, modulo 1, fill a span evenly at any time, without knowing how many there will be."""


class Closing(NamedTuple):
    """The ``goodbye`` of a stream; ``retry_after`` in seconds, None: not with this token."""

    code: str
    reason: str
    retry_after: float | None


TOKEN_EXPIRED = Closing("token_expired", "The token has expired; come back with a new one.", None)
TOKEN_REVOKED = Closing("token_revoked", "The token was revoked.", None)
SUSPENDED = Closing("suspended", "This account is suspended.", None)
RESYNC = Closing(
    "resync", "What was lost may have changed what you ask for or may see; come back with the cursor.", 0.1
)
TOO_SLOW = Closing("too_slow", "Too far behind for too long; the cursor says where to go on.", 5.0)

BACKFILL_DONE = Closing("backfill_done", "What was asked for of the past has been sent.", None)


class Shutdown:
    """The end of a server: its clients return spread evenly over ``spread_seconds``, not all at once.

    It begins at a random place of the span, so that several processes which stop together do not tell the same.
    """

    def __init__(self, spread_seconds: float, source: random.Random) -> None:
        self.spread_seconds = spread_seconds
        self._place = source.random()

    def retry_after(self) -> float:
        """When the next client is to come back, in seconds."""
        self._place = (self._place + GOLDEN) % 1.0
        return round(SOONEST_SECONDS + self._place * (self.spread_seconds - SOONEST_SECONDS), 3)

    def closing(self) -> Closing:
        """The next client's goodbye."""
        return shutdown(self.retry_after())


def shutdown(retry_after: float) -> Closing:
    """The server stops; ``retry_after`` is in seconds, another for each client (:class:`Shutdown`)."""
    return Closing("shutdown", "The server is stopping; the cursor holds on every other one.", retry_after)
