"""Remembers the claims of verified tokens, because a client sends the same token with each request.

Verifying a signature costs more than most of what a request needs besides. The memory holds a digest and not the token.
It says nothing about revocation: that is `stream_server.feed.token_statuses`.
"""

from hashlib import sha256
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_TOKENS = 10_000
"""Number of tokens that are remembered, about 6 MB. The one that was unused for longest is forgotten first."""


class VerifiedTokens(Generic[T]):
    """Remembers the claims of tokens that were verified, each for a limited time.

    All times are Unix times in seconds.
    """

    def __init__(self, max_tokens: int = MAX_TOKENS) -> None:
        self._max_tokens = max_tokens
        self._found: dict[bytes, tuple[T, float, float]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def get(self, token: str, now: float) -> T | None:
        """Return the claims of a token. Return None if they are not remembered or may not be valid at ``now``.

        If the clock was set back to before the time of the verification, the claims are not used.
        """
        digest = _digest(token)
        entry = self._found.pop(digest, None)
        if entry is None or not entry[1] <= now < entry[2]:
            return None
        self._found[digest] = entry
        return entry[0]

    def put(self, token: str, claims: T, verified_at: float, valid_until: float) -> None:
        """Remember the claims of a token that was verified at ``verified_at``, until ``valid_until``."""
        if len(self._found) >= self._max_tokens:
            del self._found[next(iter(self._found))]
        self._found[_digest(token)] = (claims, verified_at, valid_until)

    def clear(self) -> None:
        """Forget all tokens: the keys that verified them have changed."""
        self._found.clear()


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogateescape")).digest()
