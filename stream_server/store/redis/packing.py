"""Commands in Redis' protocol, made from ready pieces: a page reads thirty rows by commands that differ by an id only.

hiredis packs any command, but it takes ten times as long as one ``%``, because it looks at each word.
"""

from collections.abc import Iterable


def pack_words(words: Iterable[bytes]) -> bytes:
    """Return words of a command in Redis' protocol, without the head that says how many they are."""
    return b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def pack_set_read(name: bytes, key: bytes, members: bytes, count: int) -> bytes:
    """Return the command ``name`` for a key and ``count`` members of its set, which :func:`pack_words` has packed."""
    return b"*%d\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n%b" % (count + 2, len(name), name, len(key), key, members)


class KeyRead:
    """Makes one command for many keys that begin alike, such as HMGET for the same fields of many hashes."""

    def __init__(self, name: bytes, key_prefix: bytes, *arguments: bytes) -> None:
        """``arguments`` are the words behind the key."""
        self._format = b"*%d\r\n%b$%%d\r\n%b%%b\r\n%b" % (
            len(arguments) + 2, pack_words([name]), key_prefix.replace(b"%", b"%%"),
            pack_words(arguments).replace(b"%", b"%%"),
        )  # fmt: skip
        self._prefix_length = len(key_prefix)

    def command(self, key_end: bytes) -> bytes:
        """Return the command for the key that ends with ``key_end``."""
        return self._format % (self._prefix_length + len(key_end), key_end)
