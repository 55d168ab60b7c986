"""What a stream yields: one message, an event or a word of the server about the stream."""

from dataclasses import dataclass
from typing import Any

import msgspec

from stream_server.client.errors import Malformed

CONTROL_KINDS = frozenset({"hello", "heartbeat", "warning", "gap", "effective", "goodbye"})
"""The kinds that speak about the stream itself."""


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """One message of a stream.

    ``kind`` is ``post``, ``delete``, ``follow`` …, or one of :data:`CONTROL_KINDS`; ``cursor`` is where to resume after
    it; ``at`` when it happened (ISO 8601, UTC); ``data`` the whole JSON object; ``raw`` the same as it came.
    """

    kind: str
    cursor: str
    at: str
    data: dict[str, Any]
    raw: bytes

    @property
    def is_control(self) -> bool:
        """Whether the server speaks about the stream, not about something that happened."""
        return self.kind in CONTROL_KINDS

    @property
    def status(self) -> dict[str, Any]:
        """The status of a ``post`` or ``delete``; empty for other kinds."""
        found = self.data.get("status")
        return found if isinstance(found, dict) else {}


def parse_message(raw: bytes) -> StreamMessage:
    """The message in one JSON object; raises :class:`Malformed` if it is none of this server's."""
    try:
        data = msgspec.json.decode(raw, type=dict[str, Any])
        return StreamMessage(str(data["kind"]), str(data["cursor"]), str(data.get("at", "")), data, raw)
    except (msgspec.DecodeError, RecursionError, KeyError) as error:
        raise Malformed(f"a message that is none of a stream-server: {raw[:80]!r}") from error
