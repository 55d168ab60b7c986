"""A stable hash of a text to an integer from 0 to 2^64 - 1. Every machine and every run gives the same value."""

from hashlib import blake2b

HASH_SPACE = 2**64
"""Number of possible hash values."""


def stable_hash(text: str, key: bytes) -> int:
    """Return the first 8 bytes of the BLAKE2b hash (RFC 7693) of the text under ``key``, as a big-endian integer."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), key=key).digest()[:8], "big")
