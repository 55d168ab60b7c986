"""One stream over many connections: it reconnects, resumes behind its cursor, and drops repeated events."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, Self

import aiohttp

from stream_server.client.backoff import Backoff
from stream_server.client.errors import (
    Malformed,
    OutcomeUnknown,
    RequestRefused,
    StreamEnded,
    Unreachable,
    parse_refusal,
)
from stream_server.client.events import Event, Gap, Goodbye, Hello, parse_event
from stream_server.client.framing import Frame, FrameParser, NdjsonParser, SseParser
from stream_server.client.transport import Transport

Framing = Literal["sse", "ndjson"]
FRAME_PARSERS: dict[str, Callable[[], FrameParser]] = {"sse": SseParser, "ndjson": NdjsonParser}
"""The parser of each framing, by name. Both framings carry the same messages."""
MAX_REMEMBERED_CURSORS = 4096
"""How many cursors of the latest events the client remembers, to drop an event that arrives twice."""
MAX_QUERY_CHARS = 2000
"""Most characters of parameters in a URL. The client sends longer parameters as a form, because proxies limit URLs."""
MAX_SILENCE_SECONDS = 45.0
"""Seconds of silence after which a connection counts as dead: three of the server's default heartbeat intervals."""

def _say_nothing(_: str) -> None:
    pass

@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream behaves, apart from what it selects.

    Attributes:
        control: Also yield ``hello``, ``heartbeat``, ``warning``, ``effective`` and ``goodbye``.
        framing: ``sse`` or ``ndjson``; the messages are the same.
        silence_seconds: Reconnect after this time without bytes. Must exceed the server's heartbeat interval.
        backoff: Delays between reconnects; by default about 0.5 s, doubling up to 30 s.
        on_connection_change: Called with a sentence for people when the connection is lost or restored.
    """

    control: bool = False
    framing: Framing = "sse"
    silence_seconds: float = MAX_SILENCE_SECONDS
    backoff: Backoff = field(default_factory=Backoff)
    on_connection_change: Callable[[str], None] = _say_nothing

class Stream:
    """Yields the events of one stream, and reconnects when the connection breaks.

    After a lost connection the stream continues after its last cursor, so no event is lost or yielded twice. A ``gap``
    is always yielded. It waits between attempts as long as the server asks, else as its back-off says. It ends only
    when iteration raises:

    - :class:`Unreachable` if the first connection fails.
    - :class:`RequestRefused` if the server refuses the parameters or the token, or the first connection for any reason.
    - :class:`StreamEnded` if the server's ``goodbye`` tells the client not to reconnect.
    - :class:`Malformed` if the received bytes are not a stream of this server.

    Iterated again after that, or after a cancelled wait, it connects again and continues after its cursor.

    Attributes:
        cursor: Position after the last event that was yielded, or after a later control message. None before the first
            one if there was no ``since``. Store it, and pass it as ``since`` to go on without loss.
        connections: How many times the stream has connected successfully.
        connection: The server's id of the present connection; None without a connection.
        token: The token with which the present connection goes on.
    """

    def __init__(
        self,
        transport: Transport,
        path: str,
        parameters: Mapping[str, str],
        options: StreamOptions,
        *,
        since: str | None = None,
        on_connect: Callable[["Stream"], None] = lambda _: None,
    ) -> None:
        self.cursor = since
        self.connections = 0
        self.connection: str | None = None
        self.token = ""
        self._transport = transport
        self._url = transport.url + path
        self._parameters = dict(parameters)
        self._options = options
        self._on_connect = on_connect
        self._failures = 0
        self._retry_seconds: float | None = None
        self._goodbye: Goodbye | None = None
        self._seen = RememberedCursors(MAX_REMEMBERED_CURSORS)
        self._head = since  # after the last message that arrived; `cursor` follows as the events are yielded
        self._received: deque[tuple[str | None, Event | None]] = deque()  # of one chunk, so a few hundred at most
        self._arrivals: AsyncGenerator[None, None] | None = None
        self._is_receiving = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Iterated again, the stream opens a new one."""
        arrivals = self._arrivals
        if arrivals is not None and not self._is_receiving:  # else another task waits in it, which is to be cancelled
            self._arrivals = None
            await arrivals.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            while self._received:
                self.cursor, event = self._received.popleft()
                if event is not None:
                    return event
            await self._receive()

    async def next_batch(self) -> list[Event]:
        """Return the events that arrive together, at least one, in order: for programs that store many at once."""
        events = [await anext(self)]
        while self._received:
            self.cursor, event = self._received.popleft()
            if event is not None:
                events.append(event)
        return events

    async def _receive(self) -> None:
        """Wait for bytes that contain messages. Their events are in ``_received`` then."""
        if self._arrivals is None:
            self._arrivals = self._read()
        self._is_receiving = True
        try:
            await anext(self._arrivals)
        except BaseException:  # it has ended, also by a cancelled wait: the next call begins a new one
            self._arrivals = None
            raise
        finally:
            self._is_receiving = False

    async def _read(self) -> AsyncGenerator[None, None]:
        while True:
            lost = "the server closed the connection"
            try:
                async with aclosing(self._connection()) as arrivals:
                    async for _ in arrivals:
                        yield
            except _ExpiredToken as error:
                lost = str(error)
            except RequestRefused as error:  # of the stream for good, or of a fresh token
                if not (error.is_temporary and self.connections):
                    raise
                lost, self._retry_seconds = str(error), error.retry_after
            except (aiohttp.ClientError, OSError, TimeoutError, Unreachable, OutcomeUnknown) as error:
                lost = str(error) or type(error).__name__
                if not self.connections:
                    raise Unreachable(f"{self._url} cannot be reached: {lost}") from error
            await self._wait_before_reconnect(lost)

    async def _connection(self) -> AsyncGenerator[None, None]:
        framing = FRAME_PARSERS[self._options.framing]()
        try:
            async with self._open(framing) as response:
                async for chunk in response.content.iter_any():
                    fault = self._accept_chunk(framing, chunk)
                    if self._received:
                        yield
                    if fault is not None:
                        raise fault
        finally:
            self.connection = None

    def _accept_chunk(self, framing: FrameParser, chunk: bytes) -> Malformed | None:
        """Accept the frames that the chunk completes. Return what is wrong with the first bad one."""
        try:
            for frame in framing.feed(chunk):
                self._accept_frame(frame)
        except Malformed as error:
            return error
        return None

    @asynccontextmanager
    async def _open(self, parser: FrameParser) -> AsyncIterator[aiohttp.ClientResponse]:
        """Request the stream and yield the HTTP answer. Redirects are errors: another host could get the token."""
        self.token = await self._transport.tokens.get()
        headers = {"Accept": parser.media_type} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        query = self._parameters | ({"since": self._head} if self._head is not None else {})
        fits_in_url = sum(len(name) + len(value) + 2 for name, value in query.items()) <= MAX_QUERY_CHARS
        method, url_query, form = ("GET", query, None) if fits_in_url else ("POST", None, query)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=self._options.silence_seconds)
        async with self._transport.stream_session.request(
            method, self._url, params=url_query, data=form, headers=headers, allow_redirects=False, timeout=timeout
        ) as response:
            if response.status != 200:
                raise await self._refusal(response)
            if self.connections:
                self._options.on_connection_change("reconnected")
            self.connections += 1
            yield response

    async def _refusal(self, response: aiohttp.ClientResponse) -> Exception:
        """Return the exception for an error answer: RequestRefused, or _ExpiredToken if there can be a fresh token."""
        body = await response.content.read(65536)
        refused = parse_refusal(response.status, response.headers.get("Retry-After"), body)
        if self._renews_token(refused.code) and (self.connections or not self._failures):
            return _ExpiredToken(str(refused))
        return refused

    def _accept_frame(self, frame: Frame) -> None:
        """Put the frame's cursor into ``_received``, with its event unless that is repeated or unwanted control."""
        if frame.retry_ms is not None:
            self._retry_seconds = frame.retry_ms / 1000
        if frame.data is None:
            self._move(frame.cursor or self._head, None)
            return
        event = parse_event(frame.data)
        if isinstance(event, Hello):
            self.connection = event.connection
            self._on_connect(self)
        elif isinstance(event, Goodbye):
            self._goodbye = event
        else:
            self._failures = 0  # the stream works; a server that only sends hello and goodbye does not count
        if event.is_control:
            self._move(event.cursor, event if self._options.control or isinstance(event, Gap) else None)
        elif self._seen.add(event.cursor):
            self._move(event.cursor, event)

    def _move(self, cursor: str | None, event: Event | None) -> None:
        self._head = cursor
        self._received.append((cursor, event))

    async def _wait_before_reconnect(self, reason: str) -> None:
        """Wait as long as the server asked, else as the back-off says. Raises StreamEnded if ``goodbye`` forbids it."""
        named, self._retry_seconds = self._retry_seconds, None
        if self._goodbye is not None:
            goodbye, self._goodbye = self._goodbye, None
            reason, named = goodbye.reason, goodbye.retry_after
            if named is None and not self._renews_token(goodbye.code):
                raise StreamEnded(goodbye.code, goodbye.reason)
        delay = self._options.backoff.delay(self._failures, named)
        self._failures += 1
        self._options.on_connection_change(f"connection lost ({reason}), reconnecting in {delay:.1f} s")
        await asyncio.sleep(delay)

    def _renews_token(self, code: str) -> bool:
        """Whether a new connection can have a fresh token, because the old one expired. Give the old one up then."""
        can_renew = code == "token_expired" and self._transport.tokens.can_renew
        if can_renew:
            self._transport.tokens.discard(self.token)
        return can_renew

class RememberedCursors:
    """The cursors of the latest events, at most ``capacity``."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._in_order: deque[str] = deque()
        self._known: set[str] = set()

    def add(self, cursor: str) -> bool:
        """Remember the cursor. Return False if it was remembered already."""
        if cursor in self._known:
            return False
        self._known.add(cursor)
        self._in_order.append(cursor)
        if len(self._in_order) > self._capacity:
            self._known.discard(self._in_order.popleft())
        return True

class _ExpiredToken(Exception):
    """Raised if the server refuses a connection because of a token that the client can renew."""
