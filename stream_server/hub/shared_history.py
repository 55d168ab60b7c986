"""The end of what all clients of a group have got, so that compression may refer to it.

A single event compresses little by itself, because the names of its members come once. After an event that the decoder
has just read, it compresses to a fifth. Compressed bytes that refer to earlier bytes count back from their own place in
the stream. So they are right only for clients that have got the same bytes, without anything in between.
"""

from collections.abc import Callable
from typing import TypeAlias

WrapAfter: TypeAlias = Callable[[bytes, bytes], bytes]
"""Wraps bytes (second argument) for clients that have got the bytes in the first argument directly before."""

MIN_SHARING_CLIENTS = 8
"""Fewest clients of a group with a history. A history costs one compression for each group and flush, and fewer clients
save less than that. Groups without a history share single frames instead, see `ClientGroup.take_batch`."""

MAX_HISTORY_BYTES = 4096
"""Longest history of a group, about six posts. Twice as much makes an event one byte in twenty shorter."""


class SharedHistory:
    """The bytes that the clients of one group have got since it last changed.

    Each client that joins has got other bytes before. Therefore the history begins anew when clients have joined or
    left, which ``version`` shows (`Memberships.version`), and when one client has got bytes of its own (`forget`).
    """

    __slots__ = ("_tail", "_version", "_wrap_after")

    def __init__(self, wrap_after: WrapAfter) -> None:
        self._wrap_after = wrap_after
        self._tail = b""
        self._version = -1

    def wrap(self, data: bytes, version: int) -> bytes:
        """Wrap ``data``, the next bytes for all clients that were in the group at ``version``."""
        earlier = self._tail if version == self._version else b""
        wrapped = self._wrap_after(earlier, data)
        self._tail = (earlier + data)[-MAX_HISTORY_BYTES:]
        self._version = version
        return wrapped

    def forget(self) -> None:
        """Begin anew: a client has got bytes that the others have not."""
        self._tail = b""
