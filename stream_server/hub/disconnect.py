"""Why a stream ends: a code for programs, a sentence for people, and whether to come back."""

import random
from typing import NamedTuple

MIN_RETRY_SECONDS = 0.1
"""Nobody is told to return at once: who is stopping may still be the one who answers."""

GOLDEN_RATIO = (5**0.5 - 1) / 2
"""Steps of this length, modulo 1, fill a span evenly at any time, without knowing how many there will be."""


class DisconnectReason(NamedTuple):
    """The ``goodbye`` of a stream; ``retry_after_seconds`` in seconds, None: not with this token."""

    code: str
    text: str
    retry_after_seconds: float | None


TOKEN_EXPIRED = DisconnectReason("token_expired", "The token has expired; come back with a new one.", None)
TOKEN_REVOKED = DisconnectReason("token_revoked", "The token was revoked.", None)
SUSPENDED = DisconnectReason("suspended", "This account is suspended.", None)
RESYNC = DisconnectReason(
    "resync", "What was lost may have changed what you ask for or may see; come back with the cursor.", 0.1
)
TOO_SLOW = DisconnectReason("too_slow", "Too far behind for too long; the cursor says where to go on.", 5.0)

BACKFILL_DONE = DisconnectReason("backfill_done", "What was asked for of the past has been sent.", None)


class ReconnectSpread:
    """The end of a server: its clients return spread evenly over ``spread_seconds``, not all at once.

    It begins at a random place of the span, so that several processes which stop together do not tell the same.
    """

    def __init__(self, spread_seconds: float, random_source: random.Random) -> None:
        self.spread_seconds = spread_seconds
        self._phase = random_source.random()

    def next_retry_after(self) -> float:
        """When the next client is to come back, in seconds."""
        self._phase = (self._phase + GOLDEN_RATIO) % 1.0
        return round(MIN_RETRY_SECONDS + self._phase * (self.spread_seconds - MIN_RETRY_SECONDS), 3)

    def next_disconnect_reason(self) -> DisconnectReason:
        """The next client's goodbye."""
        return shutdown_reason(self.next_retry_after())


def shutdown_reason(retry_after_seconds: float) -> DisconnectReason:
    """The server stops; ``retry_after_seconds`` is in seconds, another for each client (:class:`ReconnectSpread`)."""
    return DisconnectReason(
        "shutdown", "The server is stopping; the cursor holds on every other one.", retry_after_seconds
    )
