"""Long polling: the events of a stream in ordinary answers, for networks that let no stream through."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import msgspec

from stream_server.client.connection import Connection, Frame, StreamRequest, fits_in_url, parse_event
from stream_server.client.stream import Stream
from stream_server.client.transport import Backoff, Transport
from stream_server.wire.messages import Event, Goodbye


class _Page(msgspec.Struct):
    events: list[msgspec.Raw]
    cursor: str
    connection: str = ""

    def frames(self) -> list[Frame]:
        return [*(Frame(bytes(event)) for event in self.events), Frame(None, self.cursor)]


class Poll(Stream):
    """A stream whose connection is a row of requests ``GET /v1/events``, each from the cursor of the one before.

    It holds one page of events at a time. A ``gap`` is always yielded, other control messages never. After the first
    answer it repeats requests that fail for now, without end. It raises what a stream raises.
    """

    def __init__(
        self, transport: Transport, parameters: Mapping[str, str], *, since: str | None, wait: float, limit: int,
        backoff: Backoff | None = None,
    ) -> None:  # fmt: skip
        # The next request acknowledges what the answer before it had.
        super().__init__(transport, "/v1/events", parameters, {"backoff": backoff, "acks": False}, since=since)
        self._answered_by = ""  # the connection of the last page of a shared subscription
        seconds = wait + 15.0  # an answer may take longer than the server waits
        self._pages = _Pages(transport, {"wait": f"{wait:g}", "limit": str(limit)}, seconds)

    async def next_page(self) -> list[Event]:
        """Send one request, and return its events: none if there was none for ``wait`` seconds."""
        await self.close()
        page = await self._pages.ask(_behind(self._head, self._answered_by, self._parameters))
        self.cursor = self._head = page.cursor
        self._answered_by = page.connection
        return [parse_event(bytes(event)) for event in page.events]

    def _connect(self, request: StreamRequest) -> AbstractAsyncContextManager[Connection]:
        return _connect(self._pages, request.parameters)

    def _move(self, cursor: str | None, event: Event | None) -> None:
        if event is None and self._received:  # the last event of a page is yielded with the cursor of the page
            event = self._received.pop().event
        super()._move(cursor, event)


def _behind(cursor: str | None, connection: str, parameters: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters of the page behind a cursor. Of a subscription, the page acknowledges the cursor.

    ``connection`` had the cursor, if the subscription is shared.
    """
    name = "cursor" if "subscription" in parameters else "since"
    by = {"connection": connection} if connection else {}
    return parameters if cursor is None else {**parameters, name: cursor, **by}


class _Pages(NamedTuple):
    """Requests the pages of a `Poll`. It knows nothing of the poll, which ends when its user has forgotten it.

    Attributes:
        options: The parameters beside those of the filters.
        seconds: Time in which an answer must come.
    """

    transport: Transport
    options: Mapping[str, str]
    seconds: float

    async def ask(self, parameters: Mapping[str, str]) -> _Page:
        query, call = {**parameters, **self.options}, self.transport.call
        if fits_in_url(query):
            return await call(_Page, "GET", "/v1/events", query=query, seconds=self.seconds)
        return await call(_Page, "POST", "/v1/events", body=query, seconds=self.seconds, is_read=True)


@asynccontextmanager
async def _connect(pages: _Pages, parameters: Mapping[str, str]) -> AsyncIterator[Connection]:
    yield _PollConnection(pages, parameters, await pages.ask(parameters))


class _PollConnection:
    """The connection of a `Poll`: yields the events of the page ``first``, then asks for page after page."""

    def __init__(self, pages: _Pages, parameters: Mapping[str, str], first: _Page) -> None:
        self._pages = pages
        self._parameters = parameters
        self._page = first
        self._has_old_filters = False

    async def arrivals(self) -> AsyncGenerator[Iterable[Frame], None]:
        while True:
            frames = self._page.frames()
            yield frames
            says_goodbye = any(frame.data and isinstance(parse_event(frame.data), Goodbye) for frame in frames[-2:])
            if says_goodbye or self._has_old_filters:
                return
            self._page = await self._pages.ask(_behind(self._page.cursor, self._page.connection, self._parameters))

    async def update(self, parameters: Mapping[str, str], update_id: str) -> bool:  # noqa: ARG002 - see Connection
        self._has_old_filters = True
        return False
