"""One connection of a stream, by HTTP or by WebSocket: it gives the frames that arrive, in order.

The parsers split Server-Sent Events, or one JSON object a line, into frames. A frame becomes a message of ``wire``.
"""

import re
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlencode

import aiohttp
import msgspec

from stream_server.client.bounds import CONNECT_SECONDS, MAX_RECEIVED_BYTES, bound_delay, parse_retry_after
from stream_server.client.errors import (
    Malformed,
    RequestRefused,
    Unreachable,
    parse_refusal,
    refusal_of,
    summary_of,
)
from stream_server.client.proxies import unreachable_by_answer
from stream_server.wire.errors import STATUS_BY_CODE
from stream_server.wire.messages import EVENT_TYPES, Control, Event

_LINE_END = re.compile(rb"\r\n|\r|\n")


class Frame(NamedTuple):
    """One parsed frame: the JSON of a message or None, and, if given, a cursor (``id``) and a ``retry`` delay."""

    data: bytes | None
    cursor: str | None = None
    retry_seconds: float | None = None


class FrameParser(Protocol):
    """The interface of a parser for the bytes of one connection. It takes chunks and returns complete frames."""

    media_type: str

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        """Return the frames that ``chunk`` completes. Raises Malformed for a message over ``MAX_RECEIVED_BYTES``."""


class NdjsonParser:
    """Splits the bytes of one connection into lines of JSON. Ignores empty lines, which keep the connection alive."""

    media_type = "application/x-ndjson"

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield a frame for each line that ``chunk`` completes, except empty lines."""
        first, *rest = chunk.split(b"\n")
        self._buffer(first)
        for line in rest:
            complete = b"".join(self._parts).strip()
            self._parts, self._size = [], 0
            self._buffer(line)
            if complete:
                yield Frame(complete)

    def _buffer(self, part: bytes) -> None:
        """Add bytes to the incomplete line. Raises Malformed if the line exceeds the size limit."""
        self._size += len(part)
        if self._size > MAX_RECEIVED_BYTES:
            raise Malformed(f"a line of more than {MAX_RECEIVED_BYTES} bytes")
        self._parts.append(part)


class SseParser:
    """Parses Server-Sent Events, blocks that end with an empty line, as WHATWG HTML defines them.

    Lines end with LF, CR or CRLF. A CRLF counts as one line end even if it is split between two chunks. A byte order
    mark at the start is dropped. The parser ignores fields other than ``data``, ``id`` and ``retry``, and an ``id``
    that contains a NUL. It ignores ``event`` too, because each message of this server names its kind in the JSON.
    """

    media_type = "text/event-stream"

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._data: list[bytes] = []
        self._id: str | None = None
        self._retry_seconds: float | None = None
        self._size = 0
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield a frame for each block that ``chunk`` completes, also if it has only an ``id`` or ``retry``."""
        for line in self._lines(chunk):
            if not line:  # the block ends
                data, cursor, retry_seconds = self._data, self._id, self._retry_seconds
                self._data, self._id, self._retry_seconds = [], None, None
                self._size = sum(map(len, self._parts))
                if data or cursor is not None or retry_seconds is not None:  # else it is empty, or a comment
                    yield Frame(b"\n".join(data) if data else None, cursor, retry_seconds)
                continue
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
            elif name == b"id" and b"\0" not in value:
                self._id = value.decode(errors="replace")
            elif name == b"retry" and value.isdigit():
                self._retry_seconds = bound_delay(float(value) / 1000)

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF that the network split
            self._after_cr = False
        if not chunk:
            return
        self._after_cr = chunk.endswith(b"\r")
        first, *rest = _LINE_END.split(chunk)
        self._buffer(first)
        for part in rest:
            line = b"".join(self._parts)
            self._parts = []
            self._buffer(part)
            if self._first:
                self._first = False
                line = line.removeprefix(BOM_UTF8)
            yield line

    def _buffer(self, part: bytes) -> None:
        """Add bytes to the incomplete line. Raises Malformed if the block is over ``MAX_RECEIVED_BYTES`` now."""
        self._size += len(part)
        if self._size > MAX_RECEIVED_BYTES:
            raise Malformed(f"a message of more than {MAX_RECEIVED_BYTES} bytes")
        self._parts.append(part)


class _Head(msgspec.Struct):
    kind: str


_decode_head = msgspec.json.Decoder(_Head).decode
_DECODERS: dict[str, Callable[[bytes], Event]] = {
    kind: msgspec.json.Decoder(each).decode for kind, each in EVENT_TYPES.items()
}
_decode_unknown: Callable[[bytes], Event] = msgspec.json.Decoder(Event).decode


def parse_event(raw: bytes) -> Event:
    """Parse one JSON object into an event. Raises :class:`Malformed` if it is not a message of this server."""
    try:
        event = _decode(raw, _decode_head(raw).kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not a message of a stream-server ({error}): {summary_of(raw)}") from error
    msgspec.structs.force_setattr(event, "raw", raw)
    return event


def _decode(raw: bytes, kind: str) -> Event:
    try:
        return _DECODERS.get(kind, _decode_unknown)(raw)
    except msgspec.ValidationError:  # repeated from the same cursor, it would end the stream again and again
        if issubclass(EVENT_TYPES.get(kind, Event), Control):
            raise
        return _decode_unknown(raw)


Framing = Literal["sse", "ndjson", "websocket"]
"""The formats of messages on the wire; the messages are the same in all framings."""

MAX_REFUSAL_BYTES = 65536
"""Most bytes that the client reads of an answer that is no stream."""

WEBSOCKET_CLOSE_SECONDS = 2.0
"""Longest wait for the server's part in closing a WebSocket. A server that is dead does not take part."""


class StreamRequest(NamedTuple):
    """The request of a stream. After ``silence_seconds`` without a byte, the connection counts as broken."""

    url: str
    parameters: Mapping[str, str]
    token: str
    silence_seconds: float

    def headers(self, accept: str) -> dict[str, str]:
        """Return the headers of the request."""
        return {"Accept": accept} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})


class Connection(Protocol):
    """An open connection of a stream, by HTTP or by WebSocket."""

    def arrivals(self) -> AsyncGenerator[Iterable[Frame], None]:
        """Yield, for each piece of data that arrives, the frames in it. Ends when the server closes the connection."""

    async def update(self, parameters: Mapping[str, str], update_id: str) -> bool:
        """Ask for other filters. Return False if that needs another connection: then this one ends at once.

        The server answers with an ``effective`` that has this id.
        """


class HttpConnection:
    """The answer to one request, which goes on without an end."""

    def __init__(self, response: aiohttp.ClientResponse, parser: FrameParser) -> None:
        self._response = response
        self._parser = parser

    async def arrivals(self) -> AsyncGenerator[Iterable[Frame], None]:
        async for chunk in self._response.content.iter_any():
            yield self._parser.feed(chunk)

    async def update(self, parameters: Mapping[str, str], update_id: str) -> bool:  # noqa: ARG002 - see Connection
        self._response.close()
        return False


class WebSocketConnection:
    """A WebSocket, on which filters can change without another connection."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def arrivals(self) -> AsyncGenerator[Iterable[Frame], None]:
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                data = message.data.encode()
                if _has_cursor(data):
                    yield [Frame(data)]
            elif message.type is aiohttp.WSMsgType.BINARY:
                raise Malformed("a binary message, which this server does not send")
            elif isinstance(message.data, aiohttp.WebSocketError):  # else the connection is lost
                raise Malformed(f"frames that break the protocol: {message.data}")

    async def update(self, parameters: Mapping[str, str], update_id: str) -> bool:
        with suppress(aiohttp.ClientError, OSError):  # the connection is lost, and the next one has the new filters
            await self._socket.send_json({"op": "update", "parameters": dict(parameters), "id": update_id})
        return True


class _Answer(msgspec.Struct):
    kind: str
    cursor: str | None = None
    error: dict[str, Any] | None = None


_decode_answer = msgspec.json.Decoder(_Answer).decode


def _has_cursor(data: bytes) -> bool:
    """Whether this is a message of the stream, and not the answer to an operation. Raises RequestRefused for an error.

    Raises Malformed if it is neither.
    """
    try:
        answer = _decode_answer(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not a message of a stream-server: {summary_of(data)}") from error
    if answer.error is not None:
        status = STATUS_BY_CODE.get(str(answer.error.get("code") or ""), 400)
        raise refusal_of(status, answer.error, "", bound_delay(answer.error.get("retry_after")))
    return answer.cursor is not None


@asynccontextmanager
async def connect(
    session: aiohttp.ClientSession, request: StreamRequest, framing: Framing
) -> AsyncIterator[Connection]:
    """Open a connection for the block. Raises RequestRefused, or what aiohttp raises if it cannot connect.

    Raises Unreachable if the answer is no stream, such as the page by which a network asks its guests to sign in.

    Redirects are errors: another host could get the token.
    """
    try:
        if framing == "websocket":
            async with _connect_websocket(session, request) as socket:
                yield WebSocketConnection(socket)
            return
        parsers: dict[Framing, Callable[[], FrameParser]] = {"sse": SseParser, "ndjson": NdjsonParser}
        parser = parsers[framing]()
        async with _send(session, request, parser.media_type) as response:
            if response.status != 200:
                raise await _refusal(response)
            if response.content_type != parser.media_type:
                page = summary_of(await response.content.read(MAX_REFUSAL_BYTES))
                raise Unreachable(f"the answer is no stream but {response.content_type}: {page or 'it has no text'}")
            yield HttpConnection(response, parser)
    except aiohttp.ClientResponseError as error:
        raise unreachable_by_answer(request.url, error) from None


def fits_in_url(parameters: Mapping[str, str]) -> bool:
    """Whether the parameters are short enough for a URL: 2,000 bytes, where most scripts take nine bytes a character.

    The client sends longer parameters in a body, because servers and proxies limit URLs.
    """
    return len(urlencode(parameters)) <= 2000


def _send(session: aiohttp.ClientSession, request: StreamRequest, media_type: str) -> Any:
    query = request.parameters
    method, url_query, form = ("GET", query, None) if fits_in_url(query) else ("POST", None, query)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=request.silence_seconds)
    return session.request(
        method, request.url, params=url_query, data=form, headers=request.headers(media_type), allow_redirects=False,
        timeout=timeout,
    )  # fmt: skip


async def _refusal(response: aiohttp.ClientResponse) -> RequestRefused:
    body = await response.content.read(MAX_REFUSAL_BYTES)
    return parse_refusal(response.status, parse_retry_after(response.headers.get("Retry-After")), body)


@asynccontextmanager
async def _connect_websocket(
    session: aiohttp.ClientSession, request: StreamRequest
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    timeout = aiohttp.ClientWSTimeout(ws_receive=request.silence_seconds, ws_close=WEBSOCKET_CLOSE_SECONDS)
    try:
        opening = await session.ws_connect(
            request.url, params=request.parameters, headers=request.headers("*/*"), timeout=timeout,
            max_msg_size=MAX_RECEIVED_BYTES, compress=15,
        )  # fmt: skip
    except aiohttp.WSServerHandshakeError as error:
        raise await _why_refused(session, request, error) from error
    async with opening as socket:
        yield socket


async def _why_refused(
    session: aiohttp.ClientSession, request: StreamRequest, error: aiohttp.WSServerHandshakeError
) -> RequestRefused:
    """Return the reason of a refused WebSocket.

    aiohttp hides the answer's body, so the request is sent again as a stream.
    """
    async with _send(session, request, SseParser.media_type) as response:
        if response.status != 200:
            return await _refusal(response)
    seconds = parse_retry_after(error.headers.get("Retry-After") if error.headers else None)
    text = "the server, or a proxy before it, refuses WebSockets"
    return RequestRefused(error.status, "", text, retry_after=seconds)
