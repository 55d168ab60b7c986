"""The reasons for which a stream ends: a code for programs, a sentence for people, and a time to reconnect."""

import random
from typing import NamedTuple

MIN_RETRY_SECONDS = 0.1
"""Shortest reconnect delay in seconds. A client that returns at once may still reach the server that is stopping."""


class DisconnectReason(NamedTuple):
    """The reason in the `goodbye` of a stream: a code for programs and a text for people.

    ``retry_after_seconds`` says when to reconnect. None: there is no use in reconnecting with this token or request.
    """

    code: str
    text: str
    retry_after_seconds: float | None


TOKEN_EXPIRED = DisconnectReason("token_expired", "The token has expired; reconnect with a new token.", None)
TOKEN_REVOKED = DisconnectReason("token_revoked", "The token was revoked.", None)
SUSPENDED = DisconnectReason("suspended", "This account is suspended.", None)
ACCOUNT_DELETED = DisconnectReason("account_deleted", "This account was deleted.", None)
TOO_MANY_STREAMS = DisconnectReason(
    "too_many_streams", "This user opened too many streams; the oldest is closed.", None
)
CLOSED_BY_USER = DisconnectReason("closed_by_user", "The user closed this stream.", None)
CLOSED_BY_OPERATOR = DisconnectReason("closed_by_operator", "An operator of the server closed this stream.", None)
TAKEN_OVER = DisconnectReason("taken_over", "Another connection reads this subscription now.", None)
REBALANCED = DisconnectReason(
    "rebalanced", "The parts of this subscription are shared out anew; reconnect for your share.", MIN_RETRY_SECONDS
)
RESYNC = DisconnectReason(
    "resync", "Lost log entries may have changed your filters or permissions; reconnect with this cursor.", 0.1
)
TOO_SLOW = DisconnectReason("too_slow", "This client was too far behind for too long; reconnect with this cursor.", 5.0)

BY_COMMAND = {
    reason.code: reason for reason in (TOO_MANY_STREAMS, CLOSED_BY_USER, CLOSED_BY_OPERATOR, TAKEN_OVER, REBALANCED)
}
"""The reasons for which a command on the log closes a stream, by their codes."""

GONE = DisconnectReason("left", "The client has left.", None)
"""The reason of a client that has left the hub. Nobody is told it, and no other reason replaces it."""

BACKFILL_DONE = DisconnectReason("backfill_done", "All requested past entries have been sent.", None)


class ReconnectSpread:
    """Gives the clients of a stopping server their reconnect delays, evenly spread over ``spread_seconds``."""

    def __init__(self, spread_seconds: float, random_source: random.Random) -> None:
        self.spread_seconds = spread_seconds
        self._phase = random_source.random()

    def next_retry_after(self) -> float:
        """Return the reconnect delay of the next client, in seconds."""
        # Steps of the golden ratio fill the span evenly, however many there are. Random times would leave gaps, and let
        # some clients return together.
        self._phase = (self._phase + (5**0.5 - 1) / 2) % 1.0
        return round(MIN_RETRY_SECONDS + self._phase * (self.spread_seconds - MIN_RETRY_SECONDS), 3)

    def next_disconnect_reason(self) -> DisconnectReason:
        """Return a `shutdown` reason for the next client, with a reconnect delay of its own."""
        return shutdown_reason(self.next_retry_after())


def shutdown_reason(retry_after_seconds: float) -> DisconnectReason:
    """Return the reason `shutdown` with this reconnect delay in seconds. See `ReconnectSpread` for the delays."""
    return DisconnectReason(
        "shutdown", "The server is stopping; the cursor is valid on every other server.", retry_after_seconds
    )
