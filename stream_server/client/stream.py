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
from stream_server.client.failures import StreamEnded, Unreachable, refusal
from stream_server.client.frame import Frame, Framing
from stream_server.client.message import Message, parse
from stream_server.client.ndjson import NdjsonParser
from stream_server.client.sse import SseParser

FRAMINGS: dict[str, Callable[[], Framing]] = {"sse": SseParser, "ndjson": NdjsonParser}
"""The framings by name; the messages are the same."""

REMEMBERED = 4096
"""Cursors of the latest events, by which one that comes twice is known."""

LONGEST_QUERY = 2000
"""Characters of parameters that go into a URL; longer ones are sent as a form, which no proxy cuts."""

SILENCE_SECONDS = 45.0
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
        control: bool = False,
        silence_seconds: float = SILENCE_SECONDS,
        backoff: Backoff | None = None,
        told: Callable[[str], None] | None = None,
    ) -> None:
        self.cursor = since
        self.connections = 0
        self._url = url.rstrip("/") + path
        self._token = token
        self._parameters = dict(parameters)
        self._framing = FRAMINGS[framing]
        self._control = control
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_seconds)
        self._backoff = backoff or Backoff()
        self._told = told or (lambda _: None)
        self._failures = 0
        self._retry_seconds: float | None = None
        self._goodbye: Message | None = None
        self._order: deque[str] = deque()
        self._seen: set[str] = set()
        self._messages: AsyncGenerator[Message, None] | None = None

    async def __aenter__(self) -> Self:
        """The client; leaving the block closes its connection, also in the middle of a message."""
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._messages is not None:
            await self._messages.aclose()

    def __aiter__(self) -> AsyncIterator[Message]:
        """The messages, without an end.

        Raises :class:`Unreachable` if the very first connection fails, ``Refused`` if the server will not have these
        parameters or this token, :class:`StreamEnded` after a ``goodbye`` that says not to come back, ``Malformed`` if
        what comes is no stream of this server.
        """
        if self._messages is None:
            self._messages = self._read()
        return self._messages

    async def _read(self) -> AsyncGenerator[Message, None]:
        async with aiohttp.ClientSession(timeout=self._timeout) as session:
            while True:
                lost = "the server closed the connection"
                try:
                    async with aclosing(self._connection(session)) as messages:
                        async for message in messages:
                            yield message
                except _Passing as error:
                    lost = str(error)
                    self._retry_seconds = error.retry_after
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    lost = _sentence(error)
                    if not self.connections:
                        raise Unreachable(f"{self._url} cannot be reached: {lost}") from error
                await self._pause(lost)

    async def _connection(self, session: aiohttp.ClientSession) -> AsyncGenerator[Message, None]:
        """The messages of one connection, until it ends."""
        framing = self._framing()
        async with self._opened(session, framing) as response:
            async for chunk in response.content.iter_any():
                for frame in framing.feed(chunk):
                    message = self._take(frame)
                    if message is not None:
                        yield message

    @asynccontextmanager
    async def _opened(self, session: aiohttp.ClientSession, framing: Framing) -> AsyncIterator[aiohttp.ClientResponse]:
        token = self._token if isinstance(self._token, str) else self._token()
        headers = {"Authorization": f"Bearer {token}", "Accept": framing.media_type}
        query = self._parameters | ({"since": self.cursor} if self.cursor is not None else {})
        method, shown, hidden = ("GET", query, None) if _short(query) else ("POST", None, query)
        # A redirect is not followed: the token would go wherever it points.
        async with session.request(
            method, self._url, params=shown, data=hidden, headers=headers, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise await self._refusal(response)
            if self.connections:
                self._told("connected again")
            self.connections += 1
            yield response

    async def _refusal(self, response: aiohttp.ClientResponse) -> Exception:
        refused = refusal(response.status, response.headers.get("Retry-After"), await response.content.read(65536))
        if refused.passing and self.connections:
            return _Passing(str(refused), refused.retry_after)
        if refused.code == "token_expired" and not isinstance(self._token, str) and self.connections:
            return _Passing(str(refused), None)
        return refused

    def _take(self, frame: Frame) -> Message | None:
        """Move the cursor; the frame's message if it is one to be yielded."""
        if frame.retry_ms is not None:
            self._retry_seconds = frame.retry_ms / 1000
        if frame.data is None:
            self.cursor = frame.cursor or self.cursor
            return None
        message = parse(frame.data)
        if message.kind not in {"hello", "goodbye"}:
            self._failures = 0  # it lives; a server that only greets and leaves is not alive
        if message.kind == "goodbye":
            self._goodbye = message
        if not message.control and self._is_repeated(message.cursor):
            return None
        self.cursor = message.cursor
        return message if self._control or not message.control or message.kind == "gap" else None

    def _is_repeated(self, cursor: str) -> bool:
        if cursor in self._seen:
            return True
        self._seen.add(cursor)
        self._order.append(cursor)
        if len(self._order) > REMEMBERED:
            self._seen.discard(self._order.popleft())
        return False

    async def _pause(self, lost: str) -> None:
        """Wait as long as it was said or is wise; raises :class:`StreamEnded` if coming back is of no use."""
        named, self._retry_seconds = self._retry_seconds, None
        if self._goodbye is not None:
            said, self._goodbye = self._goodbye.data, None
            lost, named = str(said.get("reason", "")), said.get("retry_after")
            if named is None and not self._is_renewable(said):
                raise StreamEnded(str(said.get("code", "")), lost)
        delay = self._backoff.delay(self._failures, named)
        self._failures += 1
        self._told(f"connection lost ({lost}), back in {delay:.1f} s")
        await asyncio.sleep(delay)

    def _is_renewable(self, said: Mapping[str, object]) -> bool:
        return said.get("code") == "token_expired" and not isinstance(self._token, str)


class _Passing(Exception):
    """An answer other than 200 after which the same is asked again; ``retry_after`` in seconds."""

    def __init__(self, sentence: str, retry_after: float | None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


def _short(query: Mapping[str, str]) -> bool:
    return sum(len(name) + len(value) + 2 for name, value in query.items()) <= LONGEST_QUERY


def _sentence(error: BaseException) -> str:
    return str(error) or type(error).__name__
