"""The encoding of a stream's messages as bytes. `web` builds the framings, and the hub only calls them."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from stream_server.events.entry import EncodeEntry
from stream_server.hub.messages import ControlMessage
from stream_server.hub.shared_history import WrapAfter

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
