"""Verifies tokens of HS256 in a shorter way than PyJWT, which has accepted a token with the same header before."""

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode

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
