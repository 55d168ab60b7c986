"""Idempotency keys: a script keeps the outcome of a write under its key, so that a repeated write has no effect.

Of most writes the outcome is the position of the write's entry on the log. The answer itself is not kept, because kept
answers filled Redis. For a repeated request the server reads the entry, or the data, again.
"""

import secrets
from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import NamedTuple, Self

CLIENT_TTL_MS = 24 * 3_600_000
"""Time in milliseconds for which Redis remembers a client's ``Idempotency-Key``: 24 hours."""

SERVER_TTL_MS = 60_000
"""Time in milliseconds for which Redis remembers a key made by the server: one minute, longer than the server retries.

Keeping the keys of all writes for a day would take most of the memory of a busy Redis.
"""

_CLIENT_PREFIX = "c:"


class IdempotencyKey(NamedTuple):
    """Redis keeps a write's outcome under this key for ``ttl_ms``. A write of another ``fingerprint`` cannot use it."""

    value: str
    fingerprint: str
    ttl_ms: int

    @classmethod
    def generate(cls) -> Self:
        """Make an idempotency key for a write whose client sent none."""
        return cls("s:" + secrets.token_hex(12), "-", SERVER_TTL_MS)

    @classmethod
    def from_client(cls, uid: str, key: str, payload: bytes) -> Self:
        """Make an idempotency key from the ``Idempotency-Key`` header of the user ``uid``.

        ``payload`` is the request. Its hash becomes the fingerprint, so the key cannot be reused for another request.
        The key is hashed too, because Redis keeps it for a day: all keys take the same few bytes.
        """
        return cls(f"{_CLIENT_PREFIX}{uid}:{_digest(key.encode(), 12)}", _digest(payload, 9), CLIENT_TTL_MS)

    @property
    def is_clients(self) -> bool:
        """Whether a client sent the key."""
        return self.value.startswith(_CLIENT_PREFIX)

    def for_part(self, number: int) -> Self:
        """Return this key plus ``/<number>``, for one part of a batch. Keys never contain a slash."""
        return self._replace(value=f"{self.value}/{number}")


def _digest(data: bytes, size: int) -> str:
    """Return a hash of ``size`` bytes, a multiple of three, as text."""
    return urlsafe_b64encode(blake2b(data, digest_size=size).digest()).decode()
