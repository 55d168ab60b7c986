"""The messages that a stream yields: events, and control messages about the stream itself."""

from dataclasses import dataclass
from typing import Any

import msgspec

from stream_server.client.errors import Malformed

CONTROL_KINDS = frozenset({"hello", "heartbeat", "warning", "gap", "effective", "goodbye"})
"""Kinds of messages about the stream itself, not about an event."""


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """One message of a stream.

    Attributes:
        kind: ``post``, ``delete``, ``follow`` and so on, or one of :data:`CONTROL_KINDS`.
        cursor: Position of the message. Pass it as ``since`` to resume after the message.
        at: Time of the message in ISO 8601, UTC.
        data: The whole JSON object; ``raw`` is its text as received.
    """

    kind: str
    cursor: str
    at: str
    data: dict[str, Any]
    raw: bytes

    @property
    def is_control(self) -> bool:
        """Whether the message is about the stream itself, not about an event."""
        return self.kind in CONTROL_KINDS

    @property
    def status(self) -> dict[str, Any]:
        """The JSON object of the status in a ``post`` or ``delete``; an empty dict for messages of other kinds."""
        found = self.data.get("status")
        return found if isinstance(found, dict) else {}


def parse_message(raw: bytes) -> StreamMessage:
    """Parse one JSON object into a message. Raises :class:`Malformed` if it is not a message of this server."""
    try:
        data = msgspec.json.decode(raw, type=dict[str, Any])
        return StreamMessage(str(data["kind"]), str(data["cursor"]), str(data.get("at", "")), data, raw)
    except (msgspec.DecodeError, RecursionError, KeyError) as error:
        raise Malformed(f"not a message of a stream-server: {raw[:80]!r}") from error
