"""A change of the filters of an open stream, at a position of the log at which the stream stands still."""

from collections.abc import Iterable
from typing import Protocol

from stream_server.errors import ApiError
from stream_server.events.position import Position
from stream_server.hub.client import SubscribeRequest
from stream_server.hub.messages import StreamNotice


class FilterChange(Protocol):
    """Other filters that a client asked for. The stream calls these methods between two messages."""

    async def bind(self, request: SubscribeRequest, position: Position) -> SubscribeRequest:
        """Return the request of the stream with the new filters, which begin after ``position``.

        Raises an ApiError if what the filters need cannot be read now.
        """

    def notices(self, request: SubscribeRequest, position: Position) -> Iterable[StreamNotice]:
        """Return what the stream tells its client when the filters of ``request`` are in force."""

    def refuse(self, error: ApiError) -> None:
        """Tell the client that its filters were not changed."""
