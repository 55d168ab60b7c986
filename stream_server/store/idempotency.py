"""Idempotency keys: a script keeps the reply of a write under its key, so that a repeated write has no effect."""

import secrets
from hashlib import blake2b
from typing import NamedTuple, Self

CLIENT_TTL_MS = 24 * 3_600_000
"""Time in milliseconds for which Redis remembers a client's ``Idempotency-Key``: 24 hours."""

SERVER_TTL_MS = 60_000
"""Time in milliseconds for which Redis remembers a key made by the server: one minute, longer than the server retries.

Keeping the keys of all writes for a day would take most of the memory of a busy Redis.
"""


class IdempotencyKey(NamedTuple):
    """Redis keeps a write's reply under this key for ``ttl_ms``. A write with another ``fingerprint`` cannot use it."""

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
        """
        return cls(f"c:{uid}:{key}", blake2b(payload, digest_size=16).hexdigest(), CLIENT_TTL_MS)

    def for_part(self, number: int) -> Self:
        """Return this key plus ``/<number>``, for one part of a batch. Keys of clients never contain a slash."""
        return self._replace(value=f"{self.value}/{number}")
