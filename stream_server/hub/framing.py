"""How messages of one stream become bytes on the socket.

A leaf module: `web` builds the framings, and the rest of the hub only calls them.
"""

from typing import NamedTuple, Protocol

from stream_server.events.entry import EncodeEntry
from stream_server.hub.messages import ControlMessage


class EncodeControl(Protocol):
    """A function that encodes one control message. It returns ``b""`` if the protocol has no such message."""

    def __call__(self, control: ControlMessage, /) -> bytes: ...


class WrapBytes(Protocol):
    """A function that wraps one joined write for the socket: a chunk of HTTP/1.1, or the same bytes for HTTP/1.0."""

    def __call__(self, data: bytes, /) -> bytes: ...


class Framing(NamedTuple):
    """One way of writing a stream. Two clients with equal framings can share every byte.

    Attributes:
        name: Name of the framing.
        encode_entry: Encodes an entry of the log.
        encode_control: Encodes a control message.
        wrap: Wraps the joined bytes of several messages for the socket.
    """

    name: str
    encode_entry: EncodeEntry
    encode_control: EncodeControl
    wrap: WrapBytes

    def wrap_control(self, message: ControlMessage) -> bytes:
        """Return a control message as bytes for the socket, ``b""`` if the protocol has no such message."""
        data = self.encode_control(message)
        return self.wrap(data) if data else b""
