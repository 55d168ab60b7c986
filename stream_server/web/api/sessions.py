"""Sessions: log in with a password, a refresh token or a sign-in code, list and end sessions, change the password.

A refresh token is ``<user>.<session>.<family secret>.<random>`` and works once: each log-in with it gives the next one.
All refresh tokens of a session have the same family secret. The SHA-256 of the newest one is with the session. So the
server recognizes an earlier one that is used again, which means that it was copied, and ends the session.

A sign-in code is the secret part of a link that `stream-server sign-in` prints. Its session keeps the scopes that the
maker of the link chose, also after a refresh.
"""

import re
import secrets
import time
from typing import Annotated, NamedTuple

import msgspec
from aiohttp import hdrs, web
from msgspec import Meta

from stream_server.errors import BadRequest, Forbidden, NotFound, Unauthorized
from stream_server.events.position import format_iso_time
from stream_server.security.tokens import USER_ID
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.sessions import RefreshSecrets
from stream_server.web.http import fields, query, validation
from stream_server.web.http.app_keys import AUTH, CLAIMS, CONFIG, PASSWORDS, STORE
from stream_server.web.http.authentication import token_digest
from stream_server.web.http.fields import Secret, Timestamp
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import encode_response
from stream_server.web.limits.rate_limits import LOG_INS, LOG_INS_OF_ACCOUNT, LOG_INS_OF_ADDRESS
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, Request, Route
from stream_server.wire.objects import Session

LOG_IN_LIMITS = (LOG_INS_OF_ADDRESS, LOG_INS, LOG_INS_OF_ACCOUNT)
"""Limits of log-ins with a password. A successful log-in is given back, so only guesses count.

That of the address comes first: else an address could make Redis count any number of invented accounts.
"""


SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")


class NewSession(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/sessions``: a login or e-mail address with the password, a refresh token, or a code."""

    login: Annotated[str, Meta(max_length=20)] | None = None
    email: Annotated[str, Meta(max_length=254)] | None = None
    password: Annotated[str, Meta(max_length=256)] | None = None
    refresh_token: Secret | None = None
    code: Annotated[Secret, Meta(description="from a sign-in link; valid once")] | None = None


class LogOutQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``DELETE /v1/sessions``."""

    all: Annotated[bool, Meta(description="end all sessions, and revoke all other tokens of the caller too")] = False


class OpenSession(msgspec.Struct):
    """One of the caller's log-in sessions. It ends at ``expires`` unless its refresh token is used before."""

    id: str
    created: Timestamp
    used: Annotated[Timestamp, Meta(description="the last use of a refresh token, else the log-in")]
    expires: Timestamp
    agent: Annotated[str, Meta(description="the User-Agent header of the log-in")]
    current: Annotated[bool, Meta(description="whether the token of the request belongs to this session")]


class OpenSessions(msgspec.Struct):
    """The caller's log-in sessions, the one that was used last first."""

    sessions: list[OpenSession]


class PasswordChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``PUT /v1/users/me/password``."""

    password: Annotated[str, Meta(max_length=256, description="the present password")]
    new_password: fields.Password


class RefreshToken(NamedTuple):
    """The parts of a refresh token."""

    uid: str
    session: str
    family: str
    random: str

    @classmethod
    def parse(cls, text: str) -> "RefreshToken":
        """Return the parts of ``text``. Raises Unauthorized if it has no form of a refresh token."""
        parts = text.split(".")
        if len(parts) != len(cls._fields) or not USER_ID.fullmatch(parts[0]) or not SESSION_ID.fullmatch(parts[1]):
            raise Unauthorized("the refresh token is unknown or expired")
        return cls(*parts)

    def successor(self) -> "RefreshToken":
        """Return the next refresh token of the session."""
        return self._replace(random=secrets.token_urlsafe(32))

    def secrets(self) -> RefreshSecrets:
        """Return what the store keeps of the token."""
        return RefreshSecrets(token_digest(self.family), token_digest(str(self)))

    def __str__(self) -> str:
        return ".".join(self)


async def log_in(request: Request) -> web.Response:
    """``POST /v1/sessions``: log in; the answer has an access token, a refresh token and the user."""
    if not request.app[AUTH].can_issue:
        raise NotFound("this server issues no tokens; ask its identity provider")
    credentials = await validation.read_body_as(NewSession, request)
    name = _read_login_name(credentials)
    if credentials.code is not None:
        return await _sign_in(request, credentials.code)
    if credentials.refresh_token is not None:
        return await _refresh_session(request, RefreshToken.parse(credentials.refresh_token))
    return await _start_session(request, await _user_by_password(request, name, credentials.password or ""))


async def log_out(request: Request) -> web.Response:
    """``DELETE /v1/sessions``: end the caller's session, or with ``all`` all of them, with their tokens and streams.

    To revoke only the token of the request would not be enough: a token from before the last refresh would still work.
    """
    claims, sessions, key = request[CLAIMS], request.app[STORE].sessions, IdempotencyKey.generate()
    if query.parsed_query(request, LogOutQuery).all:
        await sessions.end_all(claims.sub, key)
    elif claims.session:
        await sessions.end(claims.sub, claims.session, key)
    else:
        await sessions.revoke(claims.sub, claims.jti, int(claims.exp * 1000), key)
    return web.Response(status=204)


async def list_open(request: Request) -> web.Response:
    """``GET /v1/sessions``: list the caller's log-in sessions, the one that was used last first."""
    claims = request[CLAIMS]
    found = await request.app[STORE].sessions.list_sessions(claims.sub, int(time.time() * 1000))
    shown = []
    for each in found:
        created, used, expires = map(format_iso_time, (each.created_ms, each.used_ms, each.expires_ms))
        shown.append(OpenSession(each.id, created, used, expires, each.agent, each.id == claims.session))
    return encode_response(OpenSessions(shown))


async def end(request: Request) -> web.Response:
    """``DELETE /v1/sessions/{id}``: end one of the caller's sessions, with its tokens and streams."""
    session_id, key = request.match_info["id"], IdempotencyKey.generate()
    is_valid = SESSION_ID.fullmatch(session_id) is not None
    if not is_valid or not await request.app[STORE].sessions.end(request[CLAIMS].sub, session_id, key):
        raise NotFound("you have no such session", param="id")
    return web.Response(status=204)


async def change_password(request: Request) -> web.Response:
    """``PUT /v1/users/me/password``: change the password; this ends all other sessions and tokens of the caller."""
    body = await validation.read_body_as(PasswordChange, request)
    claims = request[CLAIMS]
    old_hash = await request.app[STORE].users.get_password_hash(claims.sub)
    await check_own_password(request, old_hash, body.password)
    new_hash = await request.app[PASSWORDS].hash(body.new_password, request.app[LIMITS].address_of(request))
    key = IdempotencyKey.generate()
    await request.app[STORE].sessions.change_password(claims.sub, old_hash or "", new_hash, claims.session, key)
    return web.Response(status=204)


async def check_own_password(request: Request, password_hash: str | None, password: str) -> None:
    """Check a password that the caller's token alone does not replace. A wrong one counts as a failed log-in.

    ``password_hash`` is that of the caller, None without a password. Raises Forbidden ``wrong_password``.
    """
    limits, name = request.app[LIMITS], f"id {request[CLAIMS].sub}"
    for limit in LOG_IN_LIMITS:
        await limits.use(request, limit, login=name)
    matches = await request.app[PASSWORDS].verify(password_hash, password, limits.address_of(request))
    if not matches or password_hash is None:
        raise Forbidden("the password is wrong", code="wrong_password", param="password")
    for limit in LOG_IN_LIMITS:
        limits.give_back(request, limit, login=name)


def _read_login_name(credentials: NewSession) -> str:
    """Return the login or e-mail address in the body, or an empty string if it has a refresh token or a code instead.

    Raises BadRequest unless the body has exactly one of login, e-mail address, refresh token and code. Raises
    BadRequest for a login or e-mail address without a password, and for a refresh token or a code with a password.
    """
    if credentials.refresh_token is not None:
        _refuse_combination(credentials, "refresh_token", ("login", "email", "password", "code"))
        return ""
    if credentials.code is not None:
        _refuse_combination(credentials, "code", ("login", "email", "password"))
        return ""
    name = credentials.login if credentials.login is not None else credentials.email
    if name is None:
        raise BadRequest("give a login, an email, a refresh_token or a code", code="missing_parameter", param="login")
    if credentials.login is not None:
        _refuse_combination(credentials, "login", ("email",))
    if credentials.password is None:
        raise BadRequest("this member is required", code="missing_parameter", param="password")
    return name


def _refuse_combination(credentials: NewSession, present: str, others: tuple[str, ...]) -> None:
    for other in others:
        if getattr(credentials, other) is not None:
            raise BadRequest(f"cannot be combined with {present}", code="conflicting_parameters", param=other)


async def _user_by_password(request: Request, login_or_email: str, password: str) -> str:
    """Return the id of the user with this login or e-mail address and password.

    Raises Unauthorized for an unknown user or a wrong password. Both cases take the same work, so a client cannot tell
    them apart by time. Raises Forbidden if the password is right but the account is suspended.
    """
    limits = request.app[LIMITS]
    for limit in LOG_IN_LIMITS:
        await limits.use(request, limit, login=login_or_email)
    found = await request.app[STORE].users.find_credentials(login_or_email)
    hashed = None if found is None else found.password_hash
    matches = await request.app[PASSWORDS].verify(hashed, password, limits.address_of(request))
    if found is None or not matches:
        raise Unauthorized("wrong login or password")
    for limit in LOG_IN_LIMITS:
        limits.give_back(request, limit, login=login_or_email)
    if found.suspended:
        raise Forbidden("this account is suspended", code="suspended")
    return found.id


async def _sign_in(request: Request, code: str) -> web.Response:
    """Exchange a sign-in code for a session with the code's scopes. Raises Unauthorized for an invalid code.

    A wrong code counts as a failed log-in from its address, although a code is too long to be guessed.
    """
    limits = request.app[LIMITS]
    await limits.use(request, LOG_INS_OF_ADDRESS)
    found = await request.app[STORE].sign_ins.redeem(code)
    if found is None:
        message = (
            "this sign-in link was used, or is older than 15 minutes; log in with a password, or ask for another link "
            "(`stream-server sign-in --user LOGIN`)"
        )
        raise Unauthorized(message, param="code")
    limits.give_back(request, LOG_INS_OF_ADDRESS)
    return await _start_session(request, found.uid, found.scopes)


async def _start_session(request: Request, uid: str, scopes: frozenset[str] = frozenset()) -> web.Response:
    """Start a session of the user, with the scopes of a log-in unless ``scopes`` names others.

    Raises Unauthorized if the user does not exist, and Forbidden if the user is suspended.
    """
    config, session_id = request.app[CONFIG], secrets.token_urlsafe(12)
    refresh_token = RefreshToken(uid, session_id, secrets.token_urlsafe(16), secrets.token_urlsafe(32))
    agent = "".join(filter(str.isprintable, request.headers.get(hdrs.USER_AGENT, "")))[:200]
    arguments = (uid, session_id, refresh_token.secrets(), config.refresh_ttl_seconds, agent)
    try:
        user = await request.app[STORE].sessions.start(*arguments, IdempotencyKey.generate(), scopes)
    except NotFound:
        raise Unauthorized("the user does not exist") from None
    return _session_answer(request, refresh_token, user, scopes)


async def _refresh_session(request: Request, token: RefreshToken) -> web.Response:
    """Exchange a refresh token. Raises Unauthorized for an invalid one, and ends the session if it was used before."""
    sessions, ttl_seconds, successor = (
        request.app[STORE].sessions, request.app[CONFIG].refresh_ttl_seconds, token.successor()
    )  # fmt: skip
    next_digest, key = successor.secrets().token, IdempotencyKey.generate()
    try:
        found = await sessions.refresh(token.uid, token.session, token.secrets(), next_digest, ttl_seconds, key)
    except NotFound:
        raise Unauthorized("the refresh token is unknown or expired") from None
    if found.outcome == "reused":
        message = "this refresh token was used before, so somebody has copied it: the session is ended; log in again"
        raise Unauthorized(message, code="token_revoked")
    if found.outcome != "refreshed":
        raise Unauthorized("the refresh token is unknown or expired")
    return _session_answer(request, successor, found.user, found.scopes)


def _session_answer(request: Request, refresh_token: RefreshToken, user: bytes, scopes: frozenset[str]) -> web.Response:
    """Return the tokens of a session. Empty ``scopes`` stand for those of a log-in."""
    ttl_seconds, authority = request.app[CONFIG].token_ttl_seconds, request.app[AUTH]
    scopes = scopes or frozenset({"read", "write", "stream"})  # the command line alone gives `firehose` and `admin`
    token, _ = authority.issue(refresh_token.uid, scopes, ttl_seconds, time.time(), refresh_token.session)
    answer = {"token": token, "token_type": "Bearer", "expires_in": ttl_seconds}
    return encode_response({**answer, "refresh_token": str(refresh_token), "user": msgspec.Raw(user)}, status=201)


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("POST", "/v1/sessions", log_in, NO_TOKEN, body=NewSession, response=Session, status=201,
          extra_error_statuses=(401, 403), works_when_full=True),
    Route("GET", "/v1/sessions", list_open, "read", response=OpenSessions),
    Route("DELETE", "/v1/sessions", log_out, ANY_TOKEN, LogOutQuery, status=204),
    Route("DELETE", "/v1/sessions/{id}", end, ANY_TOKEN, status=204),
    Route("PUT", "/v1/users/me/password", change_password, "write", body=PasswordChange, status=204,
          works_when_full=True, ignores_key=True, is_for_safety=True),
)
# fmt: on
