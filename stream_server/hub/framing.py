"""The encoding of a stream's messages as bytes. `web` builds the framings, and the hub only calls them.

`SharedHistory` has the bytes that all clients of a group have got, to which compression refers.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from stream_server.events.entry import EncodeEntry
from stream_server.hub.messages import ControlMessage

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
    left, which ``version`` shows (`ClientGroup.version`), and when one client has got bytes of its own (`forget`).
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


EncodeControl: TypeAlias = Callable[[ControlMessage], bytes]
"""A function that encodes one control message. It returns ``b""`` if the protocol has no such message."""

WrapBytes: TypeAlias = Callable[[bytes], bytes]
"""A function that wraps one joined write for the socket: it may compress, and makes a chunk for HTTP/1.1.

The data are never empty. The function must keep nothing of them: clients that join later get its results too.
"""

IDENTITY = "identity"
"""The content coding of bytes that are not compressed (RFC 9110 §12.5.3)."""


class Framing(NamedTuple):
    """One output format of a stream, for example SSE in HTTP chunks. Clients with equal framings can share every byte.

    ``encode_entry`` and ``encode_control`` encode one message. ``wrap`` wraps the joined bytes of several messages.
    ``content_coding`` names the compression that ``wrap`` contains. ``wrap_after``, if there is one, compresses better,
    but only for clients that have got equal bytes before: see `SharedHistory`.
    """

    name: str
    encode_entry: EncodeEntry
    encode_control: EncodeControl
    wrap: WrapBytes
    content_coding: str = IDENTITY
    wrap_after: WrapAfter | None = None
