"""Sessions: log in with a password or a refresh token, and log out.

A refresh token is ``<jti>.<32 random bytes>`` and works once. ``jti`` is the id of the access token issued with it, so
revoking this id also ends the refresh token.
"""

import secrets
import time
from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest, Forbidden, NotFound, Unauthorized
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.api.users import OwnUser
from stream_server.web.http import validation
from stream_server.web.http.app_keys import AUTH, CLAIMS, CONFIG, PASSWORDS, STORE
from stream_server.web.http.authentication import token_digest
from stream_server.web.http.fields import Secret
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import encode_response
from stream_server.web.limits.rate_limit import LOG_INS, LOG_INS_OF_ACCOUNT, LOG_INS_OF_ADDRESS

LOGIN_SCOPES = frozenset({"read", "write", "stream"})
"""Scopes of a token that a log-in issues. Only the command line issues ``firehose`` and ``admin``."""


LOG_IN_LIMITS = (LOG_INS, LOG_INS_OF_ADDRESS, LOG_INS_OF_ACCOUNT)
"""Limits of log-ins with a password. A successful log-in is given back, so only guesses count."""


class NewSession(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/sessions``: a login or an e-mail address with the password, or a refresh token."""

    login: Annotated[str, Meta(max_length=20)] | None = None
    email: Annotated[str, Meta(max_length=254)] | None = None
    password: Annotated[str, Meta(max_length=256)] | None = None
    refresh_token: Secret | None = None


class Session(msgspec.Struct):
    """An access token, and a refresh token that a client exchanges once for a new pair of tokens."""

    token: Annotated[str, Meta(description="for `Authorization: Bearer`")]
    token_type: Literal["Bearer"]
    expires_in: Annotated[int, Meta(ge=1, description="seconds")]
    refresh_token: Annotated[str, Meta(description="valid for one `POST /v1/sessions`")]
    user: OwnUser


async def log_in(request: web.Request) -> web.Response:
    """``POST /v1/sessions``: log in; the answer has an access token, a refresh token and the user."""
    credentials, _ = await validation.read_body_as(NewSession, request)
    name = _read_login_name(credentials)
    if credentials.refresh_token is not None:
        return await _start_session(request, await _user_by_refresh_token(request, credentials.refresh_token))
    return await _start_session(request, await _user_by_password(request, name, credentials.password or ""))


async def log_out(request: web.Request) -> web.Response:
    """``DELETE /v1/sessions``: revoke the caller's access and refresh token, and end the access token's streams."""
    claims = request[CLAIMS]  # the refresh token has the same jti, so the revocation must last as long as it
    expires_at = max(claims.exp, time.time() + request.app[CONFIG].refresh_ttl_seconds)
    await request.app[STORE].sessions.revoke(claims.sub, claims.jti, int(expires_at * 1000), IdempotencyKey.generate())
    return web.Response(status=204)


def _read_login_name(credentials: NewSession) -> str:
    """Return the login or e-mail address in the body, or an empty string if it has a refresh token instead.

    Raises BadRequest unless the body has exactly one of login, e-mail address and refresh token. Raises BadRequest for
    a login or e-mail address without a password, and for a refresh token with a password.
    """
    if credentials.refresh_token is not None:
        _refuse_combination(credentials, "refresh_token", ("login", "email", "password"))
        return ""
    name = credentials.login if credentials.login is not None else credentials.email
    if name is None:
        raise BadRequest("give a login, an email or a refresh_token", code="missing_parameter", param="login")
    if credentials.login is not None:
        _refuse_combination(credentials, "login", ("email",))
    if credentials.password is None:
        raise BadRequest("this member is required", code="missing_parameter", param="password")
    return name


def _refuse_combination(credentials: NewSession, present: str, others: tuple[str, ...]) -> None:
    for other in others:
        if getattr(credentials, other) is not None:
            raise BadRequest(f"cannot be combined with {present}", code="conflicting_parameters", param=other)


async def _user_by_password(request: web.Request, login_or_email: str, password: str) -> str:
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


async def _user_by_refresh_token(request: web.Request, token: str) -> str:
    """Use up a refresh token and return its user's id. Raises Unauthorized for an invalid token or an ended session."""
    jti = token.partition(".")[0]
    refreshed = await request.app[STORE].sessions.use_refresh_token(token_digest(token), jti, IdempotencyKey.generate())
    if refreshed is None:
        raise Unauthorized("the refresh token is unknown, used or expired")
    if refreshed.session_revoked:
        raise Unauthorized("the session was ended", code="token_revoked")
    return refreshed.uid


async def _start_session(request: web.Request, uid: str) -> web.Response:
    """Issue an access token and a refresh token for the user; raise Unauthorized if the user does not exist."""
    config, store = request.app[CONFIG], request.app[STORE]
    token, claims = request.app[AUTH].issue(uid, LOGIN_SCOPES, config.token_ttl_seconds, time.time())
    refresh_token = f"{claims.jti}.{secrets.token_urlsafe(32)}"
    try:
        user = await store.sessions.store_refresh_token(token_digest(refresh_token), uid, config.refresh_ttl_seconds)
    except NotFound:
        raise Unauthorized("the user does not exist") from None
    answer = {"token": token, "token_type": "Bearer", "expires_in": config.token_ttl_seconds}
    return encode_response({**answer, "refresh_token": refresh_token, "user": msgspec.Raw(user)}, status=201)
