"""The signature of published entries: it shows that a script of this server published them, and nobody else.

Whoever may PUBLISH in Redis could otherwise speak for any user. A script adds ``,"mac":"<hex>"`` as the last member of
the published JSON: the HMAC-SHA1 (RFC 2104) of the message without it. SHA-1 is the only hash that Redis has for
scripts. Its known weakness, collisions, does not help against an HMAC (RFC 6194 §3.3).
"""

import hmac

MAC_PREFIX = b',"mac":"'
HEX_DIGITS = 40
TAIL_BYTES = len(MAC_PREFIX) + HEX_DIGITS + len(b'"}')
BLOCK_BYTES = 64
"""Block size of SHA-1 in bytes."""


class BusSignature:
    """Checks the signatures of published entries with the key of this installation."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def open(self, message: bytes) -> bytes | None:
        """Return the message without its signature, or None if it has none or a wrong one."""
        tail = message[-TAIL_BYTES:]
        if not tail.startswith(MAC_PREFIX) or not tail.endswith(b'"}'):
            return None
        plain = message[:-TAIL_BYTES] + b"}"
        found = hmac.digest(self._key, plain, "sha1").hex().encode()
        return plain if hmac.compare_digest(found, tail[len(MAC_PREFIX) : -2]) else None


def lua_pads(key: bytes) -> tuple[str, str]:
    """Return the inner and the outer pad of HMAC as texts of Lua, each 64 bytes as decimal escapes.

    ``key`` must have at most 64 bytes, because a longer one would have to be hashed first.
    """
    if len(key) > BLOCK_BYTES:
        raise ValueError("the key of the bus has more than 64 bytes")
    padded = key.ljust(BLOCK_BYTES, b"\0")
    inner, outer = ("".join(f"\\{byte ^ pad:03d}" for byte in padded) for pad in (0x36, 0x5C))
    return inner, outer
