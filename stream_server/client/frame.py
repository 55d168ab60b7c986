"""The interface of the parsers: what they find in the bytes of a stream."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

MAX_MESSAGE_BYTES = 16 * 2**20
"""Largest message that a parser accepts. Without this limit a stream without line ends would fill the memory."""


class Frame(NamedTuple):
    """One message, or an SSE block that carries only a cursor or a reconnect delay.

    Attributes:
        data: The JSON of a message. None if the block has no data.
        cursor: The ``id`` field of SSE.
        retry_ms: The ``retry`` field of SSE: milliseconds to wait before a reconnect.
    """

    data: bytes | None
    cursor: str | None = None
    retry_ms: int | None = None


class FrameParser(Protocol):
    """A parser for one connection: it takes chunks of bytes and returns complete frames."""

    media_type: str

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        """Return the frames that ``chunk`` completes.

        Raises ``Malformed`` for a message over :data:`MAX_MESSAGE_BYTES`.
        """
