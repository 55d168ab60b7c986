"""Which entries cannot match a filter, told from their undecoded JSON.

Decoding an entry and splitting its text takes 40 µs. A client with a selective filter passes hundreds of entries for
each one that matches. Every term by which a filter finds an event stands in the JSON of its entry, so an entry without
any of them needs no decoding. A search for some bytes takes less than a microsecond.
"""

from functools import lru_cache
from typing import TypeAlias

from filters.index_keys import Key, user_key

Screen: TypeAlias = tuple[bytes, ...]
"""Bytes in lower case. An entry that has none of them does not match."""

MAX_SCREEN_KEYS = 16
"""Most keys of a screen. Searching for more takes as long as decoding."""

_USER_PREFIX = user_key("")
_SIGNS = "#@$"
"""Signs of terms. The JSON of a tag may have the text without its sign."""

_ESCAPED = frozenset('"\\')
"""Printable characters that stand in JSON as two."""


@lru_cache(1024)
def make_screen(keys: frozenset[Key]) -> Screen | None:
    """Return the screen of a filter with these keys. None if they cannot be found in JSON, or if they are too many."""
    if len(keys) > MAX_SCREEN_KEYS:
        return None
    found = tuple(_to_bytes(key) for key in keys)
    return None if b"" in found else found


def may_have_key(body: bytes, screen: Screen) -> bool:
    """Return whether an entry with the JSON ``body`` may have one of the keys. If unsure, return True.

    Characters outside ASCII have other forms, and equal letters in lower case, so such bodies are not searched.
    """
    if not body.isascii() or b"\\u" in body:
        return True
    lowered = body.lower()
    return any(part in lowered for part in screen)


def _to_bytes(key: Key) -> bytes:
    """Return bytes that the JSON of every entry with this key has, in lower case. Empty if there are none."""
    if key.startswith(_USER_PREFIX):
        return b'"%b"' % key.removeprefix(_USER_PREFIX).encode()
    term = key.lstrip(_SIGNS)
    is_plain = term.isascii() and term.isprintable() and _ESCAPED.isdisjoint(term)
    return term.encode() if is_plain else b""
