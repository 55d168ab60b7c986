"""What a framing finds in the bytes of a stream."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

MAX_MESSAGE_BYTES = 16 * 2**20
"""The longest message that is waited for: a stream without line ends may not fill the memory."""


class Frame(NamedTuple):
    """One message's bytes, or only what SSE says beside them: a cursor, a delay in ms before coming back."""

    data: bytes | None
    cursor: str | None = None
    retry_ms: int | None = None


class FrameParser(Protocol):
    """A parser of one connection: bytes as they come in, whole frames out."""

    media_type: str

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        """The frames that ``chunk`` completes; raises ``Malformed`` for a message over :data:`MAX_MESSAGE_BYTES`."""
