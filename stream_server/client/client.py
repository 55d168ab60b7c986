"""The client of one server: streams, long polling and calls, with one token and one pool of connections.

A log-in session gets tokens by a password or a refresh token, again and again. Open streams go on when the token is
renewed: the new one is put in place of the old one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, Unpack, cast
from urllib.parse import quote
from weakref import WeakSet

from stream_server.client.bounds import MAX_SERVER_DELAY_SECONDS
from stream_server.client.call import AsyncCaller
from stream_server.client.calls import Calls
from stream_server.client.errors import ClientFailure, OutcomeUnknown, RequestRefused, SessionLost, Unreachable
from stream_server.client.filters import Filters, Since, to_parameters, to_since
from stream_server.client.poll import Poll
from stream_server.client.stream import Stream, StreamOptions
from stream_server.client.tokens import (
    RENEWAL_RETRY_SECONDS,
    RENEWAL_SHARE,
    FixedToken,
    Grant,
    RenewedToken,
    fetch_from,
)
from stream_server.client.transport import Backoff, ClientOptions, Transport
from stream_server.wire.objects import Session


@dataclass(frozen=True, slots=True)
class LogIn:
    """The credentials of a user. The client logs in when it first needs a token, and logs out when it is closed.

    ``login`` may be an e-mail address.
    """

    login: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A log-in session that goes on from run to run of a program.

    Attributes:
        refresh_token: The newest refresh token of the session.
        keep: Called with each new refresh token. It must store it at once: the one before it is used up, and its second
            use would end the session.
    """

    refresh_token: str = field(repr=False)
    keep: Callable[[str], None]


class LogInSession:
    """Fetches access tokens for a :class:`RenewedToken`: first by logging in, then by the refresh token.

    The refresh token is forgotten before it is sent, unless it surely did not arrive: a second use would end the
    session. If its answer is lost, the client logs in again, or raises :class:`SessionLost` without a password.
    """

    def __init__(self, transport: Transport, credentials: LogIn | SavedSession) -> None:
        self._transport = transport
        self._credentials = credentials
        self._refresh_token = credentials.refresh_token if isinstance(credentials, SavedSession) else ""
        self._token = ""

    async def fetch(self) -> Grant:
        """Return the next access token."""
        session = await (self._refresh() if self._refresh_token else self._start())
        self._token, self._refresh_token = session.token, session.refresh_token
        if isinstance(self._credentials, SavedSession):
            self._credentials.keep(session.refresh_token)
        return Grant(session.token, session.expires_in * RENEWAL_SHARE, session.expires_in)

    async def log_out(self) -> None:
        """End a session that this object began. It is no error if the server does not answer.

        It is none either if the program ends, and Python starts no thread any more that could look up the host.
        """
        token, self._token = self._token, ""
        if token and isinstance(self._credentials, LogIn):
            self._refresh_token = ""
            self._transport.tokens.discard(token)
            with suppress(ClientFailure, RuntimeError):
                await self._transport.request("DELETE", "/v1/sessions", token=token, attempts=1, seconds=3)

    async def _start(self) -> Session:
        if isinstance(self._credentials, SavedSession):
            raise SessionLost("the session cannot be renewed, because its refresh token is used up: log in again")
        name = "email" if "@" in self._credentials.login else "login"
        try:
            return await self._ask({name: self._credentials.login, "password": self._credentials.password})
        except OutcomeUnknown as unknown:  # of the log-in: the call that needs the token was not sent
            raise unknown.last from unknown

    async def _refresh(self) -> Session:
        refresh_token, self._refresh_token = self._refresh_token, ""
        try:
            return await self._ask({"refresh_token": refresh_token}, is_once=True)
        except OutcomeUnknown:
            return await self._start()
        except RequestRefused as refused:
            if refused.status == 401 and isinstance(self._credentials, LogIn):
                return await self._start()  # the session was ended or forgotten; the password is still good
            if refused.is_temporary:
                self._refresh_token = refresh_token
            raise
        except Unreachable:  # there was no connection
            self._refresh_token = refresh_token
            raise

    async def _ask(self, body: dict[str, str], *, is_once: bool = False) -> Session:
        return await self._transport.call(Session, "POST", "/v1/sessions", body=body, token="", is_once=is_once)


class StreamProlonger:
    """Gives each open stream the next token when the present one has reached 80 % of its lifetime.

    One task does this for all streams of a client, while there are any. If a stream cannot be prolonged, it ends with
    its token, and then reconnects with the new one: nothing is lost.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._streams: WeakSet[Stream] = WeakSet()
        self._task: asyncio.Task[None] | None = None

    def add(self, stream: Stream) -> None:
        """Look after a stream that has connected."""
        self._streams.add(stream)
        if self._transport.tokens.can_renew and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run(), name="stream prolonger")

    async def close(self) -> None:
        """Close all streams, and stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.gather(*(stream.close() for stream in list(self._streams)))

    async def _run(self) -> None:
        """Give open streams each new token, until no stream is open or the lifetime of the token is unknown."""
        while self._open():
            is_done = await self._prolong_all()
            due_in = self._transport.tokens.seconds_to_renewal() if is_done else RENEWAL_RETRY_SECONDS
            if due_in is None:
                return
            # A token of a very short life must not keep the loop busy.
            await asyncio.sleep(min(max(due_in, 0.05), MAX_SERVER_DELAY_SECONDS))

    def _open(self) -> list[Stream]:
        return [stream for stream in self._streams if stream.connection is not None]

    async def _prolong_all(self) -> bool:
        """Give all open streams the present token. Return False if another attempt is needed for one of them."""
        try:
            token = await self._transport.tokens.get()
        except Exception:  # noqa: BLE001 - a function of the user may raise anything; the next reconnect tells it
            return not self._open()
        return all([await self._prolong(stream, token) for stream in self._open() if stream.token != token])

    async def _prolong(self, stream: Stream, token: str) -> bool:
        path = f"/v1/streams/{quote(stream.connection or '', safe='')}/token"
        try:
            await self._transport.request("POST", path, token=token, attempts=1)
        except RequestRefused as refused:
            return not refused.is_temporary  # such as 404: the stream has ended, and reconnects with this token
        except ClientFailure:
            return False
        stream.token = token
        return True


Token = str | Callable[[], str | Awaitable[str]] | LogIn | SavedSession
"""A JWT, a function or coroutine function that returns one, or what is needed to log in."""


class StreamArguments(Filters, StreamOptions, total=False):
    """All arguments of a stream but where it begins."""


class Client(AsyncCaller, Calls):
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

    def __init__(self, url: str, token: Token | None = None, **options: Unpack[ClientOptions]) -> None:
        """Configure the client; ``async with`` opens it.

        Args:
            url: The server's base URL, such as ``http://127.0.0.1:8000``.
            token: A JWT; a function or coroutine function that returns one; :class:`LogIn` or :class:`SavedSession`.
                A function is called when a token is needed, at 80 % of the token's lifetime and after its end. If the
                token does not tell its lifetime, the function is called for each request.
            options: See :class:`ClientOptions`.
        """
        self._transport = Transport(url, options)
        self._session: LogInSession | None = None
        if isinstance(token, LogIn | SavedSession):
            self._session = LogInSession(self._transport, token)
            self._transport.tokens = RenewedToken(self._session.fetch)
        elif callable(token):
            self._transport.tokens = RenewedToken(fetch_from(token))
        else:
            self._transport.tokens = FixedToken(token or "")
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

    def stream(self, *, since: Since | None = None, **arguments: Unpack[StreamArguments]) -> Stream:
        """Return the stream of the events that match; iterating connects it.

        Args:
            since: Start after this cursor, at this time, or at this age such as ``-15m``. None starts with new events.
                Raises ValueError beside ``subscription``, whose start the server keeps.
            arguments: What the stream selects, see :class:`Filters`, and the options of :class:`StreamOptions`.
        """
        return self._make_stream("/v1/stream", since, dict(arguments))

    def user_stream(
        self, *, since: Since | None = None, kinds: str | list[str] | None = None, **options: Unpack[StreamOptions]
    ) -> Stream:
        """Return the stream of all that concerns the caller: home timeline, notifications, messages and more."""
        return self._make_stream("/v1/stream/user", since, {"kinds": kinds, **options})

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

        Without ``since`` it returns only events after its first request. Of a named subscription it returns those
        behind what was acknowledged, and asking for the next page acknowledges the one before it.
        """
        start = None if since is None else to_since(since)
        return Poll(self._transport, to_parameters(filters), since=start, wait=wait, limit=limit, backoff=backoff)

    def _make_stream(self, path: str, since: Since | None, arguments: dict[str, Any]) -> Stream:
        names = StreamOptions.__annotations__.keys() & arguments
        options: Any = {name: arguments.pop(name) for name in names}
        parameters = to_parameters(cast("Filters", arguments))
        start = None if since is None else to_since(since)
        return Stream(self._transport, path, parameters, options, since=start, on_connect=self._prolonger.add)
