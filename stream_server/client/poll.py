"""Long polling: the events of a stream in ordinary answers, for networks that let no stream through."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Self

import msgspec

from stream_server.client.connection import fits_in_url, parse_event
from stream_server.client.errors import RequestRefused, StreamEnded, Unreachable
from stream_server.client.transport import Backoff, Transport
from stream_server.wire.messages import Event, Gap, Goodbye

MARGIN_SECONDS = 15.0
"""Seconds that an answer may take beyond ``wait``."""


class _Page(msgspec.Struct):
    events: list[msgspec.Raw]
    cursor: str


class Poll:
    """Yields the events of ``GET /v1/events``, request after request, each from the cursor of the one before.

    It holds one page of events at a time. A ``gap`` is always yielded, other control messages never. After the first
    answer it repeats requests that fail for now, without end. It raises what a stream raises.

    Attributes:
        cursor: Position after the last event that was yielded, or after its page. None before the first page if there
            was no ``since``. Store it, and pass it as ``since`` to go on without loss.
    """

    def __init__(
        self, transport: Transport, parameters: Mapping[str, str], *, since: str | None, wait: float, limit: int,
        backoff: Backoff | None = None,
    ) -> None:  # fmt: skip
        self.cursor = since
        self._transport = transport
        self._parameters = {**parameters, "wait": f"{wait:g}", "limit": str(limit)}
        self._seconds = wait + MARGIN_SECONDS
        self._backoff = backoff or Backoff()
        self._head = since  # after the last page; `cursor` follows as its events are yielded
        self._waiting: deque[Event] = deque()
        self._answers = 0
        self._failures = 0
        self._is_asking = False
        self._ask_at = 0.0  # the loop's time before which iterating sends no request, also after a cancelled wait

    async def next_page(self) -> list[Event]:
        """Send one request, and return its events: none if there was none for ``wait`` seconds."""
        events = await self._ask()
        self.cursor = self._head
        return events

    async def _ask(self) -> list[Event]:
        query = self._parameters | ({} if self._head is None else {"since": self._head})
        if fits_in_url(query):
            page = await self._transport.call(_Page, "GET", "/v1/events", query=query, seconds=self._seconds)
        else:
            page = await self._transport.call(
                _Page, "POST", "/v1/events", body=query, seconds=self._seconds, is_read=True
            )
        events = [parse_event(bytes(event)) for event in page.events]
        self._head = page.cursor
        self._answers += 1
        return events

    async def next_batch(self) -> list[Event]:
        """Return the events that the next successful answers bring, at least one, as iterating would yield them."""
        while not self._waiting:
            await self._fetch()
        events = list(self._waiting)
        self._waiting.clear()
        self.cursor = self._head
        return events

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            await self._fetch()
        event = self._waiting.popleft()
        self.cursor = event.cursor if self._waiting else self._head
        return event

    async def _fetch(self) -> None:
        if self._is_asking:
            raise RuntimeError("another task waits for the events of this poll already")
        self._is_asking = True
        try:
            events = await self._ask_until_answered()
        finally:
            self._is_asking = False
        self._waiting.extend(event for event in events if not event.is_control or isinstance(event, Gap))
        if not self._waiting:
            self.cursor = self._head
        for goodbye in events:
            if isinstance(goodbye, Goodbye):
                self._obey(goodbye)

    async def _ask_until_answered(self) -> list[Event]:
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._ask_at - clock())
            try:
                events = await self._ask()
            except (RequestRefused, Unreachable) as error:
                if not (self._answers and error.is_temporary):
                    raise
                self._ask_at = clock() + self._backoff.delay(self._failures, error.retry_after)
                self._failures += 1
            else:
                self._failures = 0
                return events

    def _obey(self, goodbye: Goodbye) -> None:
        """Delay the next request by the seconds in the goodbye.

        Raises StreamEnded if the goodbye forbids another request.
        """
        if goodbye.retry_after is not None:
            self._ask_at = asyncio.get_running_loop().time() + self._backoff.delay(0, goodbye.retry_after)
        elif not self._waiting and not self._can_renew(goodbye):
            raise StreamEnded(goodbye.code, goodbye.reason)

    def _can_renew(self, goodbye: Goodbye) -> bool:
        return goodbye.code == "token_expired" and self._transport.tokens.can_renew
