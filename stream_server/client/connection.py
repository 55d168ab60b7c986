"""One connection of a stream, by HTTP or by WebSocket: it gives the frames that arrive, in order."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlencode

import aiohttp
import msgspec

from stream_server.client.errors import (
    Malformed,
    RequestRefused,
    Unreachable,
    parse_refusal,
    parse_retry_after,
    summary_of,
)
from stream_server.client.framing import MAX_MESSAGE_BYTES, Frame, FrameParser, NdjsonParser, SseParser

Framing = Literal["sse", "ndjson", "websocket"]
"""The formats of messages on the wire; the messages are the same in all framings."""

MAX_QUERY_BYTES = 2000
"""Most bytes of parameters in a URL, where most scripts take nine bytes a character. The client sends longer parameters
in a body, because servers and proxies limit URLs."""

CONNECT_SECONDS = 10.0

MAX_PAGE_BYTES = 65536
"""Most bytes that the client reads of an answer that is no stream."""

CLOSE_SECONDS = 2.0
"""Longest wait for the server's part in closing a WebSocket. A server that is dead does not take part."""

_FRAME_PARSERS: dict[str, Callable[[], FrameParser]] = {"sse": SseParser, "ndjson": NdjsonParser}

_STATUS_BY_CODE = {"rate_limited": 429, "unavailable": 503, "outcome_unknown": 503}
"""The HTTP status of an error that comes in a message of a WebSocket; 400 for all other codes."""


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
    """An open connection."""

    def arrivals(self) -> AsyncIterator[Iterable[Frame]]:
        """Yield the frames that arrive together. Ends when the server closes the connection."""

    async def update(self, parameters: Mapping[str, str], update_id: str) -> bool:
        """Ask for other filters. Return False if that needs another connection: then this one ends at once.

        The server answers with an ``effective`` that has this id.
        """


class HttpConnection:
    """The answer to one request, which goes on without an end."""

    def __init__(self, response: aiohttp.ClientResponse, parser: FrameParser) -> None:
        self._response = response
        self._parser = parser

    async def arrivals(self) -> AsyncIterator[Iterable[Frame]]:
        async for chunk in self._response.content.iter_any():
            yield self._parser.feed(chunk)

    async def update(self, parameters: Mapping[str, str], update_id: str) -> bool:  # noqa: ARG002 - see Connection
        self._response.close()
        return False


class WebSocketConnection:
    """A WebSocket, on which filters can change without another connection."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def arrivals(self) -> AsyncIterator[Iterable[Frame]]:
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                data = message.data.encode()
                if _has_cursor(data):
                    yield [Frame(data)]
            elif message.type is aiohttp.WSMsgType.BINARY:
                raise Malformed("a binary message, which this server does not send")

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
        code = str(answer.error.get("code") or "")
        seconds = answer.error.get("retry_after")
        raise RequestRefused(
            _STATUS_BY_CODE.get(code, 400), code, str(answer.error.get("message") or ""),
            param=answer.error.get("param"), column=answer.error.get("column"),
            retry_after=seconds if isinstance(seconds, int | float) else None,
        )  # fmt: skip
    return answer.cursor is not None


@asynccontextmanager
async def connect(
    session: aiohttp.ClientSession, request: StreamRequest, framing: Framing
) -> AsyncIterator[Connection]:
    """Open a connection for the block. Raises RequestRefused, or what aiohttp raises if it cannot connect.

    Raises Unreachable if the answer is no stream, such as the page by which a network asks its guests to sign in.

    Redirects are errors: another host could get the token.
    """
    if framing == "websocket":
        async with _connect_websocket(session, request) as socket:
            yield WebSocketConnection(socket)
        return
    parser = _FRAME_PARSERS[framing]()
    async with _send(session, request, parser.media_type) as response:
        if response.status != 200:
            raise await _refusal(response)
        if response.content_type != parser.media_type:
            page = summary_of(await response.content.read(MAX_PAGE_BYTES))
            raise Unreachable(f"the answer is no stream but {response.content_type}: {page or 'it has no text'}")
        yield HttpConnection(response, parser)


def fits_in_url(parameters: Mapping[str, str]) -> bool:
    """Whether the parameters are short enough for a URL."""
    return len(urlencode(parameters)) <= MAX_QUERY_BYTES


def _send(session: aiohttp.ClientSession, request: StreamRequest, media_type: str) -> Any:
    query = request.parameters
    method, url_query, form = ("GET", query, None) if fits_in_url(query) else ("POST", None, query)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=request.silence_seconds)
    return session.request(
        method, request.url, params=url_query, data=form, headers=request.headers(media_type), allow_redirects=False,
        timeout=timeout,
    )  # fmt: skip


async def _refusal(response: aiohttp.ClientResponse) -> RequestRefused:
    body = await response.content.read(MAX_PAGE_BYTES)
    return parse_refusal(response.status, response.headers.get("Retry-After"), body)


@asynccontextmanager
async def _connect_websocket(
    session: aiohttp.ClientSession, request: StreamRequest
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    timeout = aiohttp.ClientWSTimeout(ws_receive=request.silence_seconds, ws_close=CLOSE_SECONDS)
    try:
        opening = await session.ws_connect(
            request.url, params=request.parameters, headers=request.headers("*/*"), timeout=timeout,
            max_msg_size=MAX_MESSAGE_BYTES, compress=15,
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
