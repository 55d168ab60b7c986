"""An open stream as a list shows it: to its user, and with more to an operator."""

import msgspec

from stream_server.events.position import Position, format_iso_time
from stream_server.hub.client import Client

LATEST = 253_402_300_799
"""The end of the year 9999, in seconds since 1970, for a token that never expires."""


class StreamDescription(msgspec.Struct):
    """One open stream, as its user sees it in a list.

    Attributes:
        connection: Id of the stream, as in its `hello`.
        path: The path of its request.
        parameters: The filters of its request, as a query.
        opened: When it was opened, in ISO 8601.
        expires: When its token expires, in ISO 8601.
        since: The cursor after which it began.
        cursor: The cursor that it has reached.
        live: Whether it is at the head of the log. If not, it catches up.
        delivered: Number of events written to it.
        behind: Number of log entries between its position and the head.
    """

    connection: str
    path: str
    parameters: str
    opened: str
    expires: str
    since: str
    cursor: str
    live: bool
    delivered: int
    behind: int


def describe_stream(client: Client, head: Position) -> StreamDescription:
    """Return what a list shows of a stream of this process. ``head`` is that of the log."""
    position = head if client.is_live else client.position
    return StreamDescription(
        client.connection_id, client.path, client.parameters, format_iso_time(int(client.opened_ms)),
        format_iso_time(int(min(client.token.expires_at, LATEST) * 1000)), client.since.cursor, position.cursor,
        client.is_live, client.delivered, entries_behind(client, head),
    )  # fmt: skip


def entries_behind(client: Client, head: Position) -> int:
    """Return how many entries of the log are between the position of a stream and the head."""
    return 0 if client.is_live else max(0, head.n - client.position.n)
