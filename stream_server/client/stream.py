"""A stream client that reconnects by itself.

The connection may break, the server may restart, the token may be renewed. The reader still sees one sequence of
messages, each event once, and a ``gap`` where the server could not deliver.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Self

import aiohttp

from stream_server.client.backoff import Backoff
from stream_server.client.errors import StreamEnded, Unreachable, parse_refusal
from stream_server.client.frame import Frame, FrameParser
from stream_server.client.message import StreamMessage, parse_message
from stream_server.client.ndjson import NdjsonParser
from stream_server.client.sse import SseParser

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

    After a break the client continues behind its last cursor, so no event is lost or yielded twice. It waits between
    attempts as the server asks, else as ``backoff`` says, and tries without end. Only the first connection is
    different: if the server is unreachable or refuses it, the client raises at once. Iteration raises:

    - :class:`Unreachable` if the first connection fails.
    - :class:`RequestRefused` if the server refuses the parameters or the token.
    - :class:`StreamEnded` if the server ends the stream with a ``goodbye`` that tells the client not to reconnect.
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
                each connection, so that it can return a fresh token when the last one has expired. With a fixed token,
                expiry ends the stream.
            parameters: The parameters of the stream, such as ``{"track": "redis,postgres"}``.
            since: Where to start: a cursor (exclusive), an ISO 8601 time, or an age such as ``-15m``. None starts with
                new events.
            framing: ``sse`` or ``ndjson``; the messages are the same.
            path: ``/v1/stream``, or ``/v1/stream/user`` for the events that concern the token's user.
            include_control: Also yield ``hello``, ``heartbeat``, ``warning``, ``effective`` and ``goodbye``. The client
                always yields a ``gap``.
            silence_seconds: Reconnect after this many seconds without any bytes. Must exceed the server's heartbeat
                interval.
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
        """Return the client. Leaving the block closes its connection, also in the middle of a message."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        if self._messages is not None:
            await self._messages.aclose()

    def __aiter__(self) -> AsyncIterator[StreamMessage]:
        """Return the endless sequence of messages. The class docstring lists the exceptions."""
        if self._messages is None:
            self._messages = self._read()
        return self._messages

    async def _read(self) -> AsyncGenerator[StreamMessage, None]:
        """Yield the messages of one connection after another, and wait between them."""
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
                    lost = _describe_error(error)
                    if not self.connections:
                        raise Unreachable(f"{self._url} cannot be reached: {lost}") from error
                await self._wait_before_reconnect(lost)

    async def _connection(self, session: aiohttp.ClientSession) -> AsyncGenerator[StreamMessage, None]:
        """Yield the messages of one connection until it ends."""
        framing = self._make_parser()
        async with self._open(session, framing) as response:
            async for chunk in response.content.iter_any():
                for frame in framing.feed(chunk):
                    message = self._accept_frame(frame)
                    if message is not None:
                        yield message

    @asynccontextmanager
    async def _open(self, session: aiohttp.ClientSession, parser: FrameParser) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send the request with the current token and cursor. Raises if the answer is not 200.

        The client does not follow redirects, because they could send the token to another host.
        """
        token = self._token if isinstance(self._token, str) else self._token()
        headers = {"Authorization": f"Bearer {token}", "Accept": parser.media_type}
        query = self._parameters | ({"since": self.cursor} if self.cursor is not None else {})
        method, url_query, form = ("GET", query, None) if _fits_in_url(query) else ("POST", None, query)
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
        """Return the exception for an answer other than 200.

        It is temporary if the client has been connected before and a retry may succeed.
        """
        refused = parse_refusal(
            response.status, response.headers.get("Retry-After"), await response.content.read(65536)
        )
        if refused.is_temporary and self.connections:
            return _TemporaryFailure(str(refused), refused.retry_after)
        if refused.code == "token_expired" and not isinstance(self._token, str) and self.connections:
            return _TemporaryFailure(str(refused), None)
        return refused

    def _accept_frame(self, frame: Frame) -> StreamMessage | None:
        """Move the cursor. Return the message of the frame if the reader should see it, else None."""
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
        """Whether an event with this cursor was already yielded. Remember the cursor if not."""
        if cursor in self._seen:
            return True
        self._seen.add(cursor)
        self._seen_in_order.append(cursor)
        if len(self._seen_in_order) > MAX_REMEMBERED_CURSORS:
            self._seen.discard(self._seen_in_order.popleft())
        return False

    async def _wait_before_reconnect(self, reason: str) -> None:
        """Wait as long as the server asked, or else as the backoff says.

        Raises :class:`StreamEnded` if a retry would not help.
        """
        named, self._retry_seconds = self._retry_seconds, None
        if self._goodbye is not None:
            goodbye, self._goodbye = self._goodbye.data, None
            reason, named = str(goodbye.get("reason", "")), goodbye.get("retry_after")
            if named is None and not self._can_renew_token(goodbye):
                raise StreamEnded(str(goodbye.get("code", "")), reason)
        delay = self._backoff.delay(self._failures, named)
        self._failures += 1
        self._on_connection_change(f"connection lost ({reason}), reconnecting in {delay:.1f} s")
        await asyncio.sleep(delay)

    def _can_renew_token(self, goodbye: Mapping[str, object]) -> bool:
        """Whether the goodbye says that the token expired, and a function can return a new one."""
        return goodbye.get("code") == "token_expired" and not isinstance(self._token, str)


class _TemporaryFailure(Exception):
    """An answer other than 200 after which the client tries again. ``retry_after`` is in seconds."""

    def __init__(self, sentence: str, retry_after: float | None) -> None:
        """Store the reason as a sentence, and the delay that the server asked for."""
        super().__init__(sentence)
        self.retry_after = retry_after


def _fits_in_url(query: Mapping[str, str]) -> bool:
    """Whether the parameters are short enough for a URL."""
    return sum(len(name) + len(value) + 2 for name, value in query.items()) <= MAX_QUERY_CHARS


def _describe_error(error: BaseException) -> str:
    """Return the text of an exception, or its class name if it has no text."""
    return str(error) or type(error).__name__
