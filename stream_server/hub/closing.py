"""Why a stream ends: a code for programs, a sentence for people, and whether to come back."""

from typing import NamedTuple


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
TOO_SLOW = Closing("too_slow", "Nothing was read for too long; the cursor says where to go on.", 5.0)

BACKFILL_DONE = Closing("backfill_done", "What was asked for of the past has been sent.", None)


def shutdown(retry_after: float) -> Closing:
    """The server stops; ``retry_after`` is spread by the caller, so that not all return at once."""
    return Closing("shutdown", "The server is stopping; the cursor holds on every other one.", retry_after)
