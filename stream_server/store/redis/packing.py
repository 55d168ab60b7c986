"""Commands in Redis' protocol, made from ready pieces: a page reads thirty rows by commands that differ by an id only.

hiredis packs any command, but it takes ten times as long as one ``%``, because it looks at each word.
"""

from collections.abc import Iterable, Sequence


def pack_words(words: Iterable[bytes]) -> bytes:
    """Return words of a command in Redis' protocol, without the head that says how many they are."""
    return b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def pack_set_read(name: bytes, key: bytes, members: bytes, count: int) -> bytes:
    """Return a command in Redis' protocol for a set. :func:`pack_words` has made ``members`` of ``count`` of them."""
    return b"*%d\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n%b" % (count + 2, len(name), name, len(key), key, members)


MULTI, EXEC = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n"
"""The two commands around those that Redis runs as one step."""


class KeyRead:
    """Makes one command for many keys that begin alike, such as HMGET for the same fields of many hashes."""

    def __init__(self, name: bytes, key_prefix: bytes, *arguments: bytes) -> None:
        """``arguments`` are the words behind the key."""
        self._start = b"*%d\r\n%b" % (len(arguments) + 2, pack_words([name]))
        self._key_prefix = key_prefix
        self._end = b"\r\n" + pack_words(arguments)
        self._starts: dict[int, bytes] = {}

    def command(self, key_end: bytes) -> bytes:
        """Return the command for the key that ends with ``key_end``."""
        return self.commands((key_end,))[0]

    def commands(self, key_ends: Sequence[bytes]) -> list[bytes]:
        """Return the commands for the keys that end with ``key_ends``."""
        starts, end = self._starts, self._end
        for length in {*map(len, key_ends)} - starts.keys():
            starts[length] = b"%b$%d\r\n%b" % (self._start, len(self._key_prefix) + length, self._key_prefix)
        return [starts[len(each)] + each + end for each in key_ends]
