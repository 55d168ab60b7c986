"""Where a thing stands on a line of 2^64 points, as good as random and the same on every machine and every day."""

from hashlib import blake2b

HASH_SPACE = 2**64
"""The length of the line."""


def stable_hash(text: str, key: bytes) -> int:
    """The point of ``text``: the first 8 bytes of its BLAKE2b hash under ``key``, big-endian (RFC 7693)."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), key=key).digest()[:8], "big")
