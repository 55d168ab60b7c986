"""Log-in sessions: from a password or a refresh token to access tokens, again and again."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from stream_server.client.errors import ClientFailure, OutcomeUnknown, RequestRefused, SessionLost, Unreachable
from stream_server.client.tokens import RENEWAL_SHARE, Grant
from stream_server.client.transport import Transport
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
