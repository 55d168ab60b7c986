"""Sessions: a password or a refresh token for an access token, and taking it back.

A refresh token is ``<jti>.<32 random bytes>``; the store keeps its SHA-256 only, and gives it out once. The
``jti`` is that of the access token it came with, so that logging out ends both.
"""

import secrets
import time
from hashlib import sha256

import msgspec
from aiohttp import web

from stream_server.errors import BadRequest, Forbidden, NotFound, Unauthorized
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.api.sessions_shapes import NewSession
from stream_server.web.http import validation
from stream_server.web.http.app_keys import AUTH, CLAIMS, CONFIG, PASSWORDS, STORE
from stream_server.web.http.responses import encode_response

LOGIN_SCOPES = frozenset({"read", "write", "stream"})
"""What a log-in gives; ``firehose`` and ``admin`` come from the command line only."""


async def log_in(request: web.Request) -> web.Response:
    """``POST /v1/sessions``: a token, a refresh token and the user."""
    asked, _ = await validation.read_body_as(NewSession, request)
    name = _read_login_name(asked)
    if asked.refresh_token is not None:
        return await _start_session(request, await _user_by_refresh_token(request, asked.refresh_token))
    return await _start_session(request, await _user_by_password(request, name, asked.password or ""))


async def log_out(request: web.Request) -> web.Response:
    """``DELETE /v1/sessions``: the token of this request, its refresh token and its streams end.

    The revocation is kept for as long as the refresh token could live, since that names the same ``jti``.
    """
    claims = request[CLAIMS]
    ends = max(claims.exp, time.time() + request.app[CONFIG].refresh_ttl_seconds)
    await request.app[STORE].sessions.revoke(claims.sub, claims.jti, int(ends * 1000), IdempotencyKey.generate())
    return web.Response(status=204)


def _read_login_name(credentials: NewSession) -> str:
    """The login or e-mail; raises BadRequest unless the body is one of the three forms."""
    if credentials.refresh_token is not None:
        _refuse_combination(credentials, "refresh_token", ("login", "email", "password"))
        return ""
    name = credentials.login if credentials.login is not None else credentials.email
    if name is None:
        raise BadRequest("give a login, an email or a refresh_token", code="missing_parameter", param="login")
    if credentials.login is not None:
        _refuse_combination(credentials, "login", ("email",))
    if credentials.password is None:
        raise BadRequest("this member is needed", code="missing_parameter", param="password")
    return name


def _refuse_combination(credentials: NewSession, given: str, others: tuple[str, ...]) -> None:
    for other in others:
        if getattr(credentials, other) is not None:
            raise BadRequest(f"not together with {given}", code="conflicting_parameters", param=other)


async def _user_by_password(request: web.Request, login_or_email: str, password: str) -> str:
    """The user whose password it is. An unknown name costs the same work and gets the same answer."""
    found = await request.app[STORE].users.find_credentials(login_or_email)
    matches = await request.app[PASSWORDS].verify(None if found is None else found.password_hash, password)
    if found is None or not matches:
        raise Unauthorized("wrong login or password")
    if found.suspended:
        raise _suspended_error()  # only here: who does not know the password does not hear of it
    return found.id


async def _user_by_refresh_token(request: web.Request, token: str) -> str:
    """The user of a refresh token, which is used up by this; raises Unauthorized.

    Raises Forbidden ``suspended`` too, and the token is good still when that has ended.
    """
    jti = token.partition(".")[0]
    taken = await request.app[STORE].sessions.use_refresh_token(_token_digest(token), jti, IdempotencyKey.generate())
    if taken is None:
        raise Unauthorized("the refresh token is unknown, used or expired")
    if taken.session_revoked:
        raise Unauthorized("the session was ended", code="token_revoked")
    return taken.uid


def _suspended_error() -> Forbidden:
    return Forbidden("this account is suspended", code="suspended")


async def _start_session(request: web.Request, uid: str) -> web.Response:
    config, store = request.app[CONFIG], request.app[STORE]
    token, claims = request.app[AUTH].issue(uid, LOGIN_SCOPES, config.token_ttl_seconds, time.time())
    refresh = f"{claims.jti}.{secrets.token_urlsafe(32)}"
    try:
        user = await store.sessions.store_refresh_token(_token_digest(refresh), uid, config.refresh_ttl_seconds)
    except NotFound:
        raise Unauthorized("the user does not exist") from None
    answer = {
        "token": token, "token_type": "Bearer", "expires_in": config.token_ttl_seconds,
        "refresh_token": refresh, "user": msgspec.Raw(user),
    }  # fmt: skip
    return encode_response(answer, status=201)


def _token_digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
