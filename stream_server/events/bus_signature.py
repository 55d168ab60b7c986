"""The signature of published entries: it shows that a script of this server published them, and no other program.

Without it, any program that may PUBLISH in Redis could publish entries in the name of any user. A script adds
``,"mac":"<hex>"`` as the last member of the published JSON: the HMAC-SHA1 (RFC 2104) of the message without it, except
that the outer hash takes the inner one as hexadecimal digits, as Redis gives it to a script. SHA-1 is the only hash
that Redis has for scripts. Its known weakness, collisions, does not help against an HMAC (RFC 6194 §3.3).
"""

import hashlib
import hmac

MAC_PREFIX = b',"mac":"'
TAIL_BYTES = len(MAC_PREFIX) + 40 + len(b'"}')
BLOCK_BYTES = 64
"""Block size of SHA-1 in bytes."""


class BusSignature:
    """Checks the signatures of published entries with the key of this installation."""

    def __init__(self, key: bytes) -> None:
        self._inner, self._outer = (hashlib.sha1(pad) for pad in _pads(key))  # noqa: S324 - see above

    def open(self, message: bytes) -> bytes | None:
        """Return a published message without its signature. Return None if the signature is missing or wrong."""
        tail = message[-TAIL_BYTES:]
        if not tail.startswith(MAC_PREFIX) or not tail.endswith(b'"}'):
            return None
        plain = message[:-TAIL_BYTES] + b"}"
        return plain if hmac.compare_digest(self.sign(plain), tail[len(MAC_PREFIX) : -2]) else None

    def sign(self, plain: bytes) -> bytes:
        """Return the signature of a message, which has none, as hexadecimal digits.

        It copies prepared hash states, which takes half the time of `hmac.digest`.
        """
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(plain)
        outer.update(inner.hexdigest().encode())
        return outer.hexdigest().encode()


def _pads(key: bytes) -> tuple[bytes, bytes]:
    """Return the inner and the outer pad of HMAC (RFC 2104) for a key.

    Raises ValueError for a key of more than 64 bytes.
    """
    if len(key) > BLOCK_BYTES:
        raise ValueError("the key of the bus has more than 64 bytes")
    padded = key.ljust(BLOCK_BYTES, b"\0")
    return bytes(byte ^ 0x36 for byte in padded), bytes(byte ^ 0x5C for byte in padded)


def lua_pads(key: bytes) -> tuple[str, str]:
    """Return the inner and the outer pad of HMAC as texts of Lua, each 64 bytes as decimal escapes.

    ``key`` must have at most 64 bytes, because a longer one would have to be hashed first.
    """
    inner, outer = ("".join(f"\\{byte:03d}" for byte in pad) for pad in _pads(key))
    return inner, outer
