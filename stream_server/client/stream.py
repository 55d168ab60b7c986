"""One stream over many connections: it reconnects, resumes behind its cursor, and drops repeated events."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import NamedTuple, Self, TypedDict, Unpack

import aiohttp

from stream_server.client.acks import Acks
from stream_server.client.bounds import bound_delay
from stream_server.client.connection import Connection, Frame, Framing, StreamRequest, connect, parse_event
from stream_server.client.errors import Malformed, OutcomeUnknown, RequestRefused, StreamEnded, Unreachable
from stream_server.client.filters import Filters, to_parameters
from stream_server.client.transport import Backoff, Transport
from stream_server.wire.messages import Effective, Event, Gap, Goodbye, Hello

MAX_REMEMBERED_CURSORS = 4096
"""Number of cursors of the latest events that the client remembers, to drop an event that arrives twice."""
STEADY_SECONDS = 30.0
"""Seconds of a connection after which the delays begin anew. One that breaks soon after its first events may do so
again, such as when a proxy or the server restarts in a loop."""


class StreamOptions(TypedDict, total=False):
    """The options of a stream, besides its filters."""

    control: bool
    """Also yield ``hello``, ``heartbeat``, ``warning``, ``effective`` and ``goodbye``. A ``gap`` is always yielded."""
    framing: Framing
    """``sse`` (the default), ``ndjson`` or ``websocket``; the events are the same."""
    silence_seconds: float
    """Reconnect after this time without bytes; 45 by default. Must exceed the server's heartbeat interval."""
    backoff: Backoff | None
    """Delays between reconnects; by default about 0.5 s, doubling up to 30 s."""
    acks: bool
    """Of a named subscription: whether to ask for the next event acknowledges those before it, which is the default.
    Without it, call :meth:`~stream_server.client.Client.ack`."""
    on_connection_change: Callable[[str], None] | None
    """Called with a sentence for people when the connection is lost or restored."""


class _Received(NamedTuple):
    """A cursor that has arrived, with its event if that is to be yielded, and the connection by which it came."""

    cursor: str | None
    event: Event | None
    connection: str


class Stream:
    """Yields the events of one stream, and reconnects when the connection breaks.

    After a lost connection the stream continues after its last cursor, so no event is lost or yielded twice. A ``gap``
    is always yielded. It waits between attempts as long as the server asks, else as its back-off says. It ends only
    when iteration raises:

    - :class:`Unreachable` if the first connection fails, or another program answers it.
    - :class:`RequestRefused` if the server refuses the parameters or the token, or the first connection for any reason.
    - :class:`StreamEnded` if the server's ``goodbye`` tells the client not to reconnect.
    - :class:`Malformed` if the received bytes are not a stream of this server.

    A stream of a named subscription begins behind what was acknowledged. Asking for the next event acknowledges the one
    before it, within a second. So a program that dies gets again what it had not finished.

    Iterated again after that, or after a cancelled wait, it connects again and continues after its cursor.

    A loop that is left by ``break`` keeps the connection, so that the next loop goes on with it. ``close``, the end of
    an ``async with`` block or of the client closes it. So does the end of the last reference to the stream, such as the
    ``break`` of ``async for event in client.stream()``.

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
        self._yields_control = options.get("control", False)
        name = self._parameters.get("subscription")
        if name and since is not None:
            raise ValueError("the server keeps where a subscription begins: leave out `since`")
        self._acks = Acks(transport, name) if name and options.get("acks", True) else None
        self._framing: Framing = options.get("framing", "sse")
        self._silence_seconds = options.get("silence_seconds", 45.0)  # three of the server's heartbeats
        self._backoff = options.get("backoff") or Backoff()
        self._tell = options.get("on_connection_change") or (lambda _: None)
        self._on_connect = on_connect
        self._failures = 0
        self._retry_seconds: float | None = None
        self._goodbye: Goodbye | None = None
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._head = since  # after the last message that arrived; `cursor` follows as the events are yielded
        self._received: deque[_Received] = deque()  # of one chunk, so a few hundred at most
        self._came_by = ""  # the connection by which the last yielded event came
        self._wanted: dict[str, str] | None = None  # the parameters of an update that is not in force yet
        self._connection: Connection | None = None
        self._opened: AsyncExitStack | None = None
        self._arrivals: AsyncGenerator[Iterable[Frame], None] | None = None
        self._fault: Malformed | None = None
        self._is_receiving = False
        self._updates = 0
        self._reconnects_now = False
        self._connected_at: float | None = None  # since when the present connection, or the last one, was open
        self._connect_at = 0.0  # the loop's time before which the stream does not connect, also after a cancelled wait

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection, and send the last ack. Iterated again, the stream opens a new one."""
        if not self._is_receiving:  # else another task waits in it, which is to be cancelled
            await self._disconnect()
        if self._acks is not None:
            await self._acks.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._acks is not None:
                self._acks.note(self.cursor, self._came_by)
            while self._received:
                self.cursor, event, self._came_by = self._received.popleft()
                if event is not None:
                    return event
            await self._receive()

    async def next_batch(self) -> list[Event]:
        """Return the events that arrive together, at least one, in order: for programs that store many at once."""
        events = [await anext(self)]
        while self._received:
            self.cursor, event, self._came_by = self._received.popleft()
            if event is not None:
                events.append(event)
        return events

    async def update(self, **filters: Unpack[Filters]) -> None:
        """Select other events from now on, at a place of the log: no event in between is lost or comes twice.

        By WebSocket the connection stays, and the event ``effective`` says where the new filters begin. Otherwise the
        stream connects again, behind the last event that arrived. If the server refuses the filters, iterating raises
        :class:`RequestRefused`; iterated again, the stream goes on with the filters that it had.
        """
        self._wanted = to_parameters(filters)
        self._updates += 1
        if self._connection is not None:
            await self._request_update(self._connection, self._wanted)

    async def _request_update(self, connection: Connection, wanted: dict[str, str]) -> None:
        stays_open = await connection.update(wanted, str(self._updates))
        self._reconnects_now = not stays_open

    async def _receive(self) -> None:
        """Wait for bytes that complete messages, and append their events to ``_received``.

        No coroutine of the stream is suspended between two calls. So nothing refers to a stream that its user has
        forgotten, and its connection closes at once.
        """
        if self._is_receiving:
            raise RuntimeError("another task waits for the events of this stream already")
        self._is_receiving = True
        try:
            while not self._received:
                await self._advance()
        except BaseException:  # also a cancelled wait: the next call connects again
            await self._disconnect()
            raise
        finally:
            self._is_receiving = False

    async def _advance(self) -> None:
        """Connect if there is no connection, else read from it. If it is lost, find when to connect again."""
        clock = asyncio.get_running_loop().time
        lost, has_token = "the server closed the connection", self._opened is not None
        try:
            if not has_token:
                await asyncio.sleep(self._connect_at - clock())
                self.token = await self._transport.tokens.get()
                has_token = True
                await self._open()
            if await self._read():
                return
        except RequestRefused as error:  # of the stream for good, or of a fresh token
            lost = self._survive(error, is_of_stream=has_token)
        except (aiohttp.ClientError, OSError, TimeoutError, Unreachable, OutcomeUnknown) as error:
            lost = str(error) or type(error).__name__
            if not self.connections:
                raise Unreachable(f"{self._url} cannot be reached: {lost}") from error
        await self._disconnect()
        self._connect_at = clock() + self._reconnect_delay(lost)

    async def _open(self) -> None:
        """Open a connection. Raises RequestRefused, Unreachable, or what aiohttp raises."""
        parameters = self._parameters if self._wanted is None else self._wanted
        begins_itself = self._head is None or "subscription" in parameters
        query = parameters if begins_itself else parameters | {"since": self._head or ""}
        request = StreamRequest(self._url, query, self.token, self._silence_seconds)
        self._opened = opened = AsyncExitStack()
        connection = await opened.enter_async_context(self._connect(request))
        self._arrivals = await opened.enter_async_context(aclosing(connection.arrivals()))
        self._connection, self._parameters = connection, parameters
        self._connected_at = asyncio.get_running_loop().time()
        if self.connections:
            self._tell("reconnected")
        self.connections += 1
        if parameters is self._wanted:
            self._wanted = None
        elif self._wanted is not None:  # it came while this connection was opening
            await self._request_update(connection, self._wanted)

    async def _read(self) -> bool:
        """Read one piece of the connection. Return False at its end. Raises Malformed behind the last good message."""
        assert self._arrivals is not None
        if self._fault is not None:
            raise self._fault
        frames = await anext(self._arrivals, None)
        if frames is None:
            return False
        try:
            for frame in frames:
                self._accept_frame(frame)
        except Malformed as error:  # raised by the next call, behind what came before the bad frame
            self._fault = error
        return True

    async def _disconnect(self) -> None:
        opened, self._opened = self._opened, None
        self.connection = self._connection = self._arrivals = self._fault = None
        if opened is not None:
            await opened.aclose()

    def _survive(self, refused: RequestRefused, *, is_of_stream: bool) -> str:
        """Return why the connection was lost, if another one may be had after this refusal. Otherwise raise it."""
        if is_of_stream:
            if not refused.is_temporary:
                self._wanted = None  # a refused update leaves the filters as they were
            if self._renews_token(refused.code) and (self.connections or not self._failures):
                return str(refused)
        if not (refused.is_temporary and self.connections):
            raise refused
        self._retry_seconds = refused.retry_after
        return str(refused)

    def _connect(self, request: StreamRequest) -> AbstractAsyncContextManager[Connection]:
        return connect(self._transport.stream_session, request, self._framing)

    def _accept_frame(self, frame: Frame) -> None:
        """Put the frame's cursor into ``_received``, with its event unless that is repeated or unwanted control."""
        if frame.retry_seconds is not None:
            self._retry_seconds = frame.retry_seconds
        if frame.data is None:
            self._move(frame.cursor or self._head, None)
            return
        event = parse_event(frame.data)
        if isinstance(event, Hello):
            self.connection = event.connection
            self._on_connect(self)
        elif isinstance(event, Effective) and event.id == str(self._updates) and self._wanted is not None:
            self._parameters, self._wanted = self._wanted, None
        elif isinstance(event, Goodbye):
            self._goodbye = event
        elif isinstance(event, Gap) and event.reason == "rolled_back":
            self._seen.clear()  # other entries may take the places of the lost ones
        if event.is_control:
            self._move(event.cursor, event if self._yields_control or isinstance(event, Gap) else None)
        elif event.cursor not in self._seen:  # else it was received twice
            self._seen[event.cursor] = None
            if len(self._seen) > MAX_REMEMBERED_CURSORS:
                self._seen.popitem(last=False)
            self._move(event.cursor, event)

    def _move(self, cursor: str | None, event: Event | None) -> None:
        self._head = cursor
        self._received.append(_Received(cursor, event, self.connection or ""))

    def _reconnect_delay(self, reason: str) -> float:
        """Return the seconds that the server asked for, else those of the back-off, and tell the callback.

        Raises StreamEnded if ``goodbye`` forbids to reconnect.
        """
        named, self._retry_seconds = self._retry_seconds, None
        began, self._connected_at = self._connected_at, None
        if began is not None and asyncio.get_running_loop().time() - began >= STEADY_SECONDS:
            self._failures = 0
        is_updating, self._reconnects_now = self._reconnects_now, False
        if is_updating and self._goodbye is None:
            return 0.0
        if self._goodbye is not None:
            goodbye, self._goodbye = self._goodbye, None
            reason, named = goodbye.reason, bound_delay(goodbye.retry_after)
            if named is None and not self._renews_token(goodbye.code):
                raise StreamEnded(goodbye.code, goodbye.reason)
        delay = self._backoff.delay(self._failures, named)
        self._failures += 1
        self._tell(f"connection lost ({reason}), reconnecting in {delay:.1f} s")
        return delay

    def _renews_token(self, code: str) -> bool:
        """Return whether the stream ended because its token expired and a new token can be had.

        If so, discard the old one.
        """
        can_renew = code == "token_expired" and self._transport.tokens.can_renew
        if can_renew:
            self._transport.tokens.discard(self.token)
        return can_renew
