"""The client of one server: streams, long polling and calls, with one token and one pool of connections."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Self, TypedDict, Unpack

from stream_server.client.backoff import Backoff
from stream_server.client.calls.groups import GroupCalls
from stream_server.client.calls.lists import ListCalls
from stream_server.client.calls.notices import NoticeCalls
from stream_server.client.calls.people import PeopleCalls
from stream_server.client.calls.rules import RuleCalls
from stream_server.client.calls.statuses import StatusCalls
from stream_server.client.calls.talks import TalkCalls
from stream_server.client.connection import Framing
from stream_server.client.filters import Filters, Since, to_parameters, to_since
from stream_server.client.log_in import LogIn, LogInSession, SavedSession
from stream_server.client.poll import Poll
from stream_server.client.prolonging import StreamProlonger
from stream_server.client.stream import MAX_SILENCE_SECONDS, Stream, StreamOptions
from stream_server.client.tokens import NO_TOKEN, FixedToken, RenewedToken, fetch_from
from stream_server.client.transport import RequestOptions, Transport

Token = str | Callable[[], str | Awaitable[str]] | LogIn | SavedSession
"""A JWT, a function or coroutine function that returns one, or what is needed to log in."""

class ClientOptions(TypedDict, total=False):
    """The options of a client; the constructor of :class:`Client` explains each."""

    attempts: int
    seconds: float
    connections: int
    backoff: Backoff | None


ConnectionCallback = Callable[[str], None]


class Client(StatusCalls, PeopleCalls, ListCalls, GroupCalls, TalkCalls, NoticeCalls, RuleCalls):
    """A client of one server, used as an async context manager.

        async with Client("http://127.0.0.1:8000", token=LogIn("ada", "a good password")) as client:
            await client.post("good morning")
            async for event in client.stream(track="redis,postgres"):
                print(event.kind, event.cursor)

    Calls are repeated after a broken connection and after the statuses 429, 502, 503 and 504. Each write carries an
    ``Idempotency-Key``, so a repeated write still takes effect once. If no attempt succeeds but one may have taken
    effect, the call raises :class:`OutcomeUnknown`. Otherwise it raises :class:`RequestRefused` if the server answers
    with an error, :class:`Unreachable` if there is no answer, and :class:`Malformed` if the answer has another form.

    A token that can be renewed is renewed at 80 % of its lifetime, and open streams go on with the new one.
    """

    def __init__(
        self,
        url: str,
        token: Token | None = None,
        *,
        attempts: int = 6,
        seconds: float = 30.0,
        connections: int = 100,
        backoff: Backoff | None = None,
    ) -> None:
        """Configure the client; ``async with`` opens it.

        Args:
            url: The server's base URL, such as ``http://127.0.0.1:8000``.
            token: A JWT; a function or coroutine function that returns one; :class:`LogIn` or :class:`SavedSession`.
                A function is called when a token is needed, at 80 % of the token's lifetime and after its end. If the
                token does not tell its lifetime, the function is called for each request.
            attempts: Most attempts for one call, the first included.
            seconds: Timeout of one attempt.
            connections: Most connections open at the same time, apart from streams.
            backoff: Delays between attempts; by default about 0.1 s, doubling up to 5 s.
        """
        super().__init__(
            Transport(url, attempts=attempts, seconds=seconds, connections=connections, backoff=backoff)
        )
        self._session: LogInSession | None = None
        if isinstance(token, LogIn | SavedSession):
            self._session = LogInSession(self._transport, token)
            self._transport.tokens = RenewedToken(self._session.fetch)
        elif callable(token):
            self._transport.tokens = RenewedToken(fetch_from(token))
        else:
            self._transport.tokens = FixedToken(token) if token else NO_TOKEN
        self._prolonger = StreamProlonger(self._transport)

    async def __aenter__(self) -> Self:
        self._transport.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._prolonger.close()
            if isinstance(self._transport.tokens, RenewedToken):
                await self._transport.tokens.finish()
            if self._session is not None:
                await self._session.log_out()
        finally:  # also if the caller is cancelled meanwhile
            await self._transport.close()

    @property
    def url(self) -> str:
        """The server's base URL, without a slash at the end."""
        return self._transport.url

    @property
    def repeats(self) -> int:
        """The number of requests that were sent again after a temporary failure."""
        return self._transport.repeats

    async def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """Send any request to the API; return the decoded JSON of the answer, or None if its body is empty.

        ``path`` is the path below the server's URL, such as ``/v1/statuses``.
        """
        return await self._transport.request(method, path, **options)

    def stream(
        self,
        *,
        since: Since | None = None,
        control: bool = False,
        framing: Framing = "sse",
        silence_seconds: float = MAX_SILENCE_SECONDS,
        backoff: Backoff | None = None,
        on_connection_change: ConnectionCallback | None = None,
        **filters: Unpack[Filters],
    ) -> Stream:
        """Return the stream of the events that match; iterating connects it.

        Args:
            since: Start after this cursor, at this time, or at this age such as ``-15m``. None starts with new events.
            control: Also yield ``hello``, ``heartbeat``, ``warning``, ``effective`` and ``goodbye``. A ``gap`` is
                always yielded.
            framing: ``sse``, ``ndjson`` or ``websocket``; the events are the same.
            silence_seconds: Reconnect after this time without bytes. Must exceed the server's heartbeat interval.
            backoff: Delays between reconnects; by default about 0.5 s, doubling up to 30 s.
            on_connection_change: Called with a sentence for people when the connection is lost or restored.
            filters: What the stream selects, see :class:`Filters`.
        """
        options = _stream_options(control, framing, silence_seconds, backoff, on_connection_change)
        return self._make_stream("/v1/stream", filters, options, since)

    def user_stream(
        self,
        *,
        since: Since | None = None,
        kinds: str | list[str] | None = None,
        control: bool = False,
        framing: Framing = "sse",
        silence_seconds: float = MAX_SILENCE_SECONDS,
        backoff: Backoff | None = None,
        on_connection_change: ConnectionCallback | None = None,
    ) -> Stream:
        """Return the stream of all that concerns the caller: home timeline, notifications, messages and more."""
        options = _stream_options(control, framing, silence_seconds, backoff, on_connection_change)
        return self._make_stream("/v1/stream/user", {} if kinds is None else {"kinds": kinds}, options, since)

    def poll(
        self,
        *,
        since: Since | None = None,
        wait: float = 25,
        limit: int = 100,
        backoff: Backoff | None = None,
        **filters: Unpack[Filters],
    ) -> Poll:
        """Return the events that match by long polling. ``wait`` is 0 to 60 s, ``limit`` 1 to 1,000 events a request.

        Without ``since`` it returns only events after its first request.
        """
        start = None if since is None else to_since(since)
        return Poll(self._transport, to_parameters(filters), since=start, wait=wait, limit=limit, backoff=backoff)

    def _make_stream(self, path: str, filters: Filters, options: StreamOptions, since: Since | None) -> Stream:
        start = None if since is None else to_since(since)
        parameters = to_parameters(filters)
        return Stream(self._transport, path, parameters, options, since=start, on_connect=self._prolonger.add)


def _stream_options(
    control: bool,  # noqa: FBT001 - passed on from the methods above
    framing: Framing,
    silence_seconds: float,
    backoff: Backoff | None,
    on_connection_change: ConnectionCallback | None,
) -> StreamOptions:
    """Return the options; None stands for the default of :class:`StreamOptions`."""
    options = StreamOptions(control, framing, silence_seconds, backoff or Backoff())
    return options if on_connection_change is None else replace(options, on_connection_change=on_connection_change)
