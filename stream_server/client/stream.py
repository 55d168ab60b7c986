"""One stream, for as long as somebody reads it.

The connection may break, the server may restart, the token may be renewed: the reader sees one sequence of
messages, each once, with a ``gap`` where the server could not deliver.
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
"""The framings by name; the messages are the same."""

MAX_REMEMBERED_CURSORS = 4096
"""Cursors of the latest events, by which one that comes twice is known."""

MAX_QUERY_CHARS = 2000
"""Characters of parameters that go into a URL; longer ones are sent as a form, which no proxy cuts."""

MAX_SILENCE_SECONDS = 45.0
"""Three heartbeats of the server's default: a connection silent for longer is dead, whatever the kernel says."""


class StreamClient:
    """Reads ``/v1/stream`` (or ``path``) with one set of parameters.

    ``url`` is the server's (``http://127.0.0.1:8000``); ``token`` a JWT, or a function that returns one and is asked
    again when the last has expired; ``parameters`` the stream's (``{"track": "redis,postgres"}``); ``since`` a cursor,
    an ISO time or ``-15m``, None for the head. With ``control``, ``hello``, ``heartbeat``, ``warning`` and ``goodbye``
    are yielded too; a ``gap`` always is. ``told`` hears a sentence whenever the connection is lost or is back.

    ``cursor`` may be read at any time, and given as ``since`` to a later client.
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
        """The client; leaving the block closes its connection, also in the middle of a message."""
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._messages is not None:
            await self._messages.aclose()

    def __aiter__(self) -> AsyncIterator[StreamMessage]:
        """The messages, without an end.

        Raises :class:`Unreachable` if the very first connection fails, ``Refused`` if the server will not have these
        parameters or this token, :class:`StreamEnded` after a ``goodbye`` that says not to come back, ``Malformed`` if
        what comes is no stream of this server.
        """
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
                    lost = _describe_error(error)
                    if not self.connections:
                        raise Unreachable(f"{self._url} cannot be reached: {lost}") from error
                await self._wait_before_reconnect(lost)

    async def _connection(self, session: aiohttp.ClientSession) -> AsyncGenerator[StreamMessage, None]:
        """The messages of one connection, until it ends."""
        framing = self._make_parser()
        async with self._open(session, framing) as response:
            async for chunk in response.content.iter_any():
                for frame in framing.feed(chunk):
                    message = self._accept_frame(frame)
                    if message is not None:
                        yield message

    @asynccontextmanager
    async def _open(self, session: aiohttp.ClientSession, parser: FrameParser) -> AsyncIterator[aiohttp.ClientResponse]:
        token = self._token if isinstance(self._token, str) else self._token()
        headers = {"Authorization": f"Bearer {token}", "Accept": parser.media_type}
        query = self._parameters | ({"since": self.cursor} if self.cursor is not None else {})
        method, shown, hidden = ("GET", query, None) if _fits_in_url(query) else ("POST", None, query)
        # A redirect is not followed: the token would go wherever it points.
        async with session.request(
            method, self._url, params=shown, data=hidden, headers=headers, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise await self._refusal(response)
            if self.connections:
                self._on_connection_change("connected again")
            self.connections += 1
            yield response

    async def _refusal(self, response: aiohttp.ClientResponse) -> Exception:
        refused = parse_refusal(
            response.status, response.headers.get("Retry-After"), await response.content.read(65536)
        )
        if refused.is_temporary and self.connections:
            return _TemporaryFailure(str(refused), refused.retry_after)
        if refused.code == "token_expired" and not isinstance(self._token, str) and self.connections:
            return _TemporaryFailure(str(refused), None)
        return refused

    def _accept_frame(self, frame: Frame) -> StreamMessage | None:
        """Move the cursor; the frame's message if it is one to be yielded."""
        if frame.retry_ms is not None:
            self._retry_seconds = frame.retry_ms / 1000
        if frame.data is None:
            self.cursor = frame.cursor or self.cursor
            return None
        message = parse_message(frame.data)
        if message.kind not in {"hello", "goodbye"}:
            self._failures = 0  # it lives; a server that only greets and leaves is not alive
        if message.kind == "goodbye":
            self._goodbye = message
        if not message.is_control and self._is_repeated(message.cursor):
            return None
        self.cursor = message.cursor
        return message if self._include_control or not message.is_control or message.kind == "gap" else None

    def _is_repeated(self, cursor: str) -> bool:
        if cursor in self._seen:
            return True
        self._seen.add(cursor)
        self._seen_in_order.append(cursor)
        if len(self._seen_in_order) > MAX_REMEMBERED_CURSORS:
            self._seen.discard(self._seen_in_order.popleft())
        return False

    async def _wait_before_reconnect(self, reason: str) -> None:
        """Wait as long as it was said or is wise; raises :class:`StreamEnded` if coming back is of no use."""
        named, self._retry_seconds = self._retry_seconds, None
        if self._goodbye is not None:
            said, self._goodbye = self._goodbye.data, None
            reason, named = str(said.get("reason", "")), said.get("retry_after")
            if named is None and not self._can_renew_token(said):
                raise StreamEnded(str(said.get("code", "")), reason)
        delay = self._backoff.delay(self._failures, named)
        self._failures += 1
        self._on_connection_change(f"connection lost ({reason}), back in {delay:.1f} s")
        await asyncio.sleep(delay)

    def _can_renew_token(self, goodbye: Mapping[str, object]) -> bool:
        return goodbye.get("code") == "token_expired" and not isinstance(self._token, str)


class _TemporaryFailure(Exception):
    """An answer other than 200 after which the same is asked again; ``retry_after`` in seconds."""

    def __init__(self, sentence: str, retry_after: float | None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


def _fits_in_url(query: Mapping[str, str]) -> bool:
    return sum(len(name) + len(value) + 2 for name, value in query.items()) <= MAX_QUERY_CHARS


def _describe_error(error: BaseException) -> str:
    return str(error) or type(error).__name__
