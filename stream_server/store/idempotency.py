"""Idempotency keys: a script keeps the reply of a write under its key, so that a repeated write has no effect."""

import secrets
from hashlib import blake2b
from typing import NamedTuple, Self

CLIENT_TTL_MS = 24 * 3_600_000
"""Time in milliseconds for which Redis remembers a client's ``Idempotency-Key``: 24 hours."""

SERVER_TTL_MS = 60_000
"""Time in milliseconds for which Redis remembers a key made by the server: one minute.

The key must outlive only the server's own retry, which comes within seconds. Keeping the keys of all writes for a day
would take most of the memory of a busy Redis.
"""


class IdempotencyKey(NamedTuple):
    """The key of one write.

    Attributes:
        value: The key itself.
        fingerprint: Hash of the request. Redis refuses the same key with another fingerprint.
        ttl_ms: Time in milliseconds for which Redis remembers the reply.
    """

    value: str
    fingerprint: str
    ttl_ms: int

    @classmethod
    def generate(cls) -> Self:
        """Make a key for a write whose client sent none."""
        return cls("s:" + secrets.token_hex(12), "-", SERVER_TTL_MS)

    @classmethod
    def from_client(cls, uid: str, key: str, payload: bytes) -> Self:
        """Make the key of a client's ``Idempotency-Key``, for this user only. ``payload`` identifies the request."""
        return cls(f"c:{uid}:{key}", blake2b(payload, digest_size=16).hexdigest(), CLIENT_TTL_MS)

    def for_part(self, number: int) -> Self:
        """Return the key of one part of a batch. It is unique, because a client's key contains no slash."""
        return self._replace(value=f"{self.value}/{number}")
