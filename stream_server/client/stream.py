"""A stream client that reconnects by itself."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Self

import aiohttp

from stream_server.client.backoff import Backoff
from stream_server.client.errors import StreamEnded, Unreachable, parse_refusal
from stream_server.client.framing import Frame, FrameParser, NdjsonParser, SseParser
from stream_server.client.message import StreamMessage, parse_message

FRAME_PARSERS: dict[str, Callable[[], FrameParser]] = {"sse": SseParser, "ndjson": NdjsonParser}
"""The parser of each framing, by name. Both framings carry the same messages."""
MAX_REMEMBERED_CURSORS = 4096
"""How many cursors of the latest events the client remembers, to drop an event that arrives twice."""
MAX_QUERY_CHARS = 2000
"""Most characters of parameters in a URL. The client sends longer parameters as a form, because proxies limit URLs."""
MAX_SILENCE_SECONDS = 45.0
"""Seconds of silence after which a connection counts as dead: three of the server's default heartbeat intervals."""


class StreamClient:
    """Reads one stream of events and reconnects when the connection breaks.

        async with StreamClient(url, token, {"track": "redis,postgres"}) as stream:
            async for message in stream:
                print(message.kind, message.data)

    After a lost connection the client continues after its last cursor, so no event is lost or yielded twice. It waits
    between attempts as long as the server asks, else as ``backoff`` says. It ends only when iteration raises:

    - :class:`Unreachable` if the first connection fails.
    - :class:`RequestRefused` if the server refuses the parameters or the token, or the first connection for any reason.
    - :class:`StreamEnded` if the server's ``goodbye`` tells the client not to reconnect.
    - :class:`Malformed` if the received bytes are not a stream of this server.

    Attributes:
        cursor: Position after the last received message; None before the first one if ``since`` was None. Store it, and
            pass it as ``since`` to a later client, to continue without loss.
        connections: How many times the client has connected successfully.
    """

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str],
        parameters: Mapping[str, str],
        *,
        since: str | None = None,
        framing: str = "sse",
        path: str = "/v1/stream",
        include_control: bool = False,
        silence_seconds: float = MAX_SILENCE_SECONDS,
        backoff: Backoff | None = None,
        on_connection_change: Callable[[str], None] | None = None,
    ) -> None:
        """Configure the client; the first iteration opens the connection.

        Args:
            url: The server's base URL, such as ``http://127.0.0.1:8000``.
            token: A JWT with the scope ``stream``, or a function that returns one. The client calls the function for
                each connection, so that it can return a fresh token. When a fixed token expires, StreamEnded is raised.
            parameters: The parameters of the stream, such as ``{"track": "redis,postgres"}``.
            since: Start after this cursor, ISO 8601 time, or age such as ``-15m``. None starts with new events.
            framing: ``sse`` or ``ndjson``; the messages are the same.
            path: ``/v1/stream``, or ``/v1/stream/user`` for the events that concern the token's user.
            include_control: Also yield ``hello``, ``heartbeat``, ``warning``, ``effective`` and ``goodbye``.
            silence_seconds: Reconnect after this time without bytes. Must exceed the server's heartbeat interval.
            backoff: Delays between reconnects; by default about 0.5 s, doubling up to 30 s.
            on_connection_change: Called with a sentence for people when the connection is lost or restored.
        """
        self.cursor = since
        self.connections = 0
        self._url = url.rstrip("/") + path
        self._token = token
        self._parameters = dict(parameters)
        self._make_parser = FRAME_PARSERS[framing]
        self._include_control = include_control
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_seconds)
        self._backoff = backoff or Backoff()
        self._on_connection_change = on_connection_change or (lambda _: None)
        self._failures = 0
        self._retry_seconds: float | None = None
        self._goodbye: StreamMessage | None = None
        self._seen_in_order: deque[str] = deque()
        self._seen: set[str] = set()
        self._messages: AsyncGenerator[StreamMessage, None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._messages is not None:
            await self._messages.aclose()

    def __aiter__(self) -> AsyncIterator[StreamMessage]:
        if self._messages is None:
            self._messages = self._read()
        return self._messages

    async def _read(self) -> AsyncGenerator[StreamMessage, None]:
        async with aiohttp.ClientSession(timeout=self._timeout) as session:
            while True:
                lost = "the server closed the connection"
                try:
                    async with aclosing(self._connection(session)) as messages:
                        async for message in messages:
                            yield message
                except _TemporaryFailure as error:
                    lost = str(error)
                    self._retry_seconds = error.retry_after
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    lost = str(error) or type(error).__name__
                    if not self.connections:
                        raise Unreachable(f"{self._url} cannot be reached: {lost}") from error
                await self._wait_before_reconnect(lost)

    async def _connection(self, session: aiohttp.ClientSession) -> AsyncGenerator[StreamMessage, None]:
        framing = self._make_parser()
        async with self._open(session, framing) as response:
            async for chunk in response.content.iter_any():
                for frame in framing.feed(chunk):
                    message = self._accept_frame(frame)
                    if message is not None:
                        yield message

    @asynccontextmanager
    async def _open(self, session: aiohttp.ClientSession, parser: FrameParser) -> AsyncIterator[aiohttp.ClientResponse]:
        """Request the stream and yield the HTTP answer. Redirects are errors: another host could get the token."""
        token = self._token if isinstance(self._token, str) else self._token()
        headers = {"Authorization": f"Bearer {token}", "Accept": parser.media_type}
        query = self._parameters | ({"since": self.cursor} if self.cursor is not None else {})
        fits_in_url = sum(len(name) + len(value) + 2 for name, value in query.items()) <= MAX_QUERY_CHARS
        method, url_query, form = ("GET", query, None) if fits_in_url else ("POST", None, query)
        async with session.request(
            method, self._url, params=url_query, data=form, headers=headers, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise await self._refusal(response)
            if self.connections:
                self._on_connection_change("reconnected")
            self.connections += 1
            yield response

    async def _refusal(self, response: aiohttp.ClientResponse) -> Exception:
        """Return the exception for an error answer: _TemporaryFailure if a retry may succeed, else RequestRefused."""
        body = await response.content.read(65536)
        refused = parse_refusal(response.status, response.headers.get("Retry-After"), body)
        if refused.is_temporary and self.connections:
            return _TemporaryFailure(str(refused), refused.retry_after)
        if self._can_renew_token(refused.code) and self.connections:
            return _TemporaryFailure(str(refused), None)
        return refused

    def _accept_frame(self, frame: Frame) -> StreamMessage | None:
        """Store the frame's cursor. Return its message; None if there is none, it is repeated, or unwanted control."""
        if frame.retry_ms is not None:
            self._retry_seconds = frame.retry_ms / 1000
        if frame.data is None:
            self.cursor = frame.cursor or self.cursor
            return None
        message = parse_message(frame.data)
        if message.kind not in {"hello", "goodbye"}:
            self._failures = 0  # the stream works; a server that only sends hello and goodbye does not count
        if message.kind == "goodbye":
            self._goodbye = message
        if not message.is_control and self._is_repeated(message.cursor):
            return None
        self.cursor = message.cursor
        return message if self._include_control or not message.is_control or message.kind == "gap" else None

    def _is_repeated(self, cursor: str) -> bool:
        """Return whether the client remembers this cursor as yielded. If it does not, make it remember the cursor."""
        if cursor in self._seen:
            return True
        self._seen.add(cursor)
        self._seen_in_order.append(cursor)
        if len(self._seen_in_order) > MAX_REMEMBERED_CURSORS:
            self._seen.discard(self._seen_in_order.popleft())
        return False

    async def _wait_before_reconnect(self, reason: str) -> None:
        """Wait as long as the server asked, else as ``backoff`` says. Raises StreamEnded if ``goodbye`` forbids it."""
        named, self._retry_seconds = self._retry_seconds, None
        if self._goodbye is not None:
            goodbye, self._goodbye = self._goodbye.data, None
            reason, named = str(goodbye.get("reason", "")), goodbye.get("retry_after")
            if named is None and not self._can_renew_token(goodbye.get("code")):
                raise StreamEnded(str(goodbye.get("code", "")), reason)
        delay = self._backoff.delay(self._failures, named)
        self._failures += 1
        self._on_connection_change(f"connection lost ({reason}), reconnecting in {delay:.1f} s")
        await asyncio.sleep(delay)

    def _can_renew_token(self, code: object) -> bool:
        """Whether a new connection can have a fresh token: the old one expired, and ``token`` is a function."""
        return code == "token_expired" and not isinstance(self._token, str)


class _TemporaryFailure(Exception):
    """Raised if the server refuses a connection for now. ``retry_after`` is the server's delay in seconds, or None."""

    def __init__(self, sentence: str, retry_after: float | None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after
