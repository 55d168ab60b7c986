"""The name of one write: under it a script keeps its answer, so that the write is made once."""

import secrets
from hashlib import blake2b
from typing import NamedTuple, Self

CLIENT_TTL_MS = 24 * 3_600_000
"""How long an ``Idempotency-Key`` of a client is remembered."""

SERVER_TTL_MS = 60_000
"""How long a key made here is remembered. It only has to outlive the one repetition, which comes within seconds;
a key for every write kept for a day would be most of the memory of a busy server."""


class IdempotencyKey(NamedTuple):
    """``value`` names the write, ``fingerprint`` its content: the same key with other content is refused."""

    value: str
    fingerprint: str
    ttl_ms: int

    @classmethod
    def generate(cls) -> Self:
        """A key for a write that came without one."""
        return cls("s:" + secrets.token_hex(12), "-", SERVER_TTL_MS)

    @classmethod
    def from_client(cls, uid: str, key: str, payload: bytes) -> Self:
        """A client's own key, which is its user's alone; ``payload`` is whatever makes the request what it is."""
        return cls(f"c:{uid}:{key}", blake2b(payload, digest_size=16).hexdigest(), CLIENT_TTL_MS)

    def for_part(self, number: int) -> Self:
        """The name of one part of a batch; the slash is in no client's key, so parts cannot meet keys."""
        return self._replace(value=f"{self.value}/{number}")
