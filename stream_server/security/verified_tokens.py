"""Remembers the claims of verified tokens, because a client sends the same token with each request.

Verifying a signature costs more than most of what a request needs besides. The memory holds a digest and not the token.
It says nothing about revocation: that is `stream_server.feed.token_statuses`.

`KnownHeaders` verifies tokens of HS256 in a shorter way than the library.
"""

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
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
        digest = sha256(token.encode(errors="surrogateescape")).digest()
        entry = self._found.pop(digest, None)
        if entry is None or not entry[1] <= now < entry[2]:
            return None
        self._found[digest] = entry
        return entry[0]

    def put(self, token: str, claims: T, verified_at: float, valid_until: float) -> None:
        """Remember the claims of a token that was verified at ``verified_at``, until ``valid_until``."""
        if len(self._found) >= self._max_tokens:
            del self._found[next(iter(self._found))]
        digest = sha256(token.encode(errors="surrogateescape")).digest()
        self._found[digest] = (claims, verified_at, valid_until)

    def clear(self) -> None:
        """Forget all tokens: the keys that verified them have changed."""
        self._found.clear()


MAX_HEADERS = 16
"""Number of different headers that are remembered. An issuer uses one, or a few."""


class KnownHeaders:
    """The encoded headers of tokens that PyJWT has accepted with one key, and the way to verify more such tokens.

    PyJWT's checks of a header and of a key depend on nothing else, so they hold for each later token. A token passes if
    its header is one of these to the byte, its signature is the text that the key gives, and its payload is unpadded
    base64url as PyJWT requires it.
    """

    __slots__ = ("_headers", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._headers: set[str] = set()

    def remember(self, token: str) -> None:
        """Remember the header of a token that PyJWT has accepted with the key."""
        if len(self._headers) < MAX_HEADERS:
            self._headers.add(token.partition(".")[0])

    def verify(self, token: str) -> bytes | None:
        """Return the payload of a token if it passes, otherwise None: then PyJWT must decide."""
        signed, _, signature = token.rpartition(".")
        header, _, payload = signed.partition(".")
        if header not in self._headers or not token.isascii():
            return None
        expected = _encode(hmac.digest(self._key, signed.encode(), "sha256"))
        if not hmac.compare_digest(expected, signature.encode()):
            return None
        return _decode(payload.encode())


def _encode(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _decode(text: bytes) -> bytes | None:
    """Return the bytes behind unpadded base64url, or None if ``text`` is not the one text that means these bytes."""
    try:
        data = urlsafe_b64decode(text + b"=" * (-len(text) % 4))  # it skips characters that are not of the alphabet
    except binascii.Error:
        return None
    return data if _encode(data) == text else None
