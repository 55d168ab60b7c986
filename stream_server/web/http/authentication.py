"""Checks a bearer token or, for a stream, a single-use ticket in the URL. Decides who may read operational data."""

import hmac
import ipaddress
import time
from dataclasses import replace
from hashlib import sha256
from urllib.parse import urlsplit

import msgspec
from aiohttp import hdrs

from stream_server.config.settings import Config
from stream_server.errors import ApiError, BadRequest, Forbidden, Unauthorized
from stream_server.security.claims import Claims
from stream_server.store.social.sessions import TokenId, TokenValidity
from stream_server.web.http.app_keys import (
    AUTH,
    CLAIMS,
    CONFIG,
    HUB,
    KEY_SET,
    STORE,
    SUBJECTS,
    TOKEN_VALIDITY_CACHE,
    VIEWER_READ,
)
from stream_server.web.http.query import query_of
from stream_server.web.http.usual_request import hold_slot
from stream_server.web.route import AppValues, Request, Route

TICKET_PARAMETER = "ticket"
"""Query parameter that carries a ticket. The middleware checks the ticket, so the handlers of streams ignore it."""

LOCAL_NAME = "localhost"
"""The name of this machine for itself. Names that end with it are, too (RFC 6761 §6.3)."""

ADMIN_SCOPE = "admin"

_decode_claims = msgspec.json.Decoder(Claims).decode


async def authenticate(request: Request, route: Route) -> Claims:
    """Return the claims of the request's token or ticket.

    Raises Unauthorized if the token or ticket is missing, invalid, expired or revoked, or if its user does not exist.
    Raises Forbidden if the account is suspended.
    """
    app = request.app
    if not route.accepts_ticket or TICKET_PARAMETER not in query_of(request).names:
        token = read_bearer_token(request) if route.dialect is None else await route.dialect.read_token(request)
        if KEY_SET in app:
            await _fetch_key_for(app, token, request if route.is_streaming else None)
        claims = app[AUTH].verify(token, time.time())
    else:
        ticket = read_ticket(request)
        await hold_slot(request)
        claims = await redeem_ticket(request, ticket)
    return await _check_claims(app, claims, request if route.is_streaming else None)


def require_route_for_readers(route: Route) -> None:
    """Raise Forbidden unless the route is for readers. For requests with a reader token."""
    if not route.is_for_readers:
        raise Forbidden("a reader token opens streams of public events, and nothing else")


async def authenticate_token(app: AppValues, token: str) -> Claims:
    """Return the claims of a token that a client sent in a message. Raises as :func:`authenticate` does."""
    if KEY_SET in app:
        await _fetch_key_for(app, token, None)
    return await _check_claims(app, app[AUTH].verify(token, time.time()), None)


async def _check_claims(app: AppValues, claims: Claims, stream_request: Request | None) -> Claims:
    """Return the claims with this server's id of the user and the scopes that the user was granted.

    Raises as :func:`authenticate` does. ``stream_request`` is the request if it opens a stream.
    """
    subject = claims.sub
    if claims.profile is not None:
        claims = await _to_own_user(app, claims, stream_request)
    token, statuses = TokenId(claims.sub, claims.jti, claims.session, claims.iat), app[TOKEN_VALIDITY_CACHE]
    token_validity = statuses.get_known(token)
    if token_validity is None:
        await hold_slot(stream_request)
        if stream_request is not None:
            # Most streams need the user's relations. So they are read before Redis has said whether the token is valid.
            # The request holds them: they are forgotten with it if the token is refused.
            viewers = app[HUB].viewer_cache
            if claims.reader is None and viewers.get_loaded(token.uid) is None:
                stream_request[VIEWER_READ] = viewers.start_reading(token.uid)
        token_validity = await statuses.ask(token, shared=stream_request is not None)
        if not token_validity.user_exists:
            app[SUBJECTS].pop(subject, None)  # another issuer's user may come back with a new account
        await _refuse_invalid_token(app, token, token_validity)  # only valid ones are known
    if token_validity.granted and (claims.session or app[CONFIG].external_subjects == "on"):
        return replace(claims, scopes=claims.scopes | token_validity.granted)
    return claims


async def _refuse_invalid_token(app: AppValues, token: TokenId, token_validity: TokenValidity) -> None:
    """Raise Unauthorized if the token was revoked or its user does not exist, Forbidden if the user is suspended."""
    if not token_validity.user_exists and await app[STORE].sessions.is_gone(token.uid):
        raise Unauthorized("this account was deleted", code="account_deleted")
    if not token_validity.user_exists:
        raise Unauthorized("the token's user does not exist")
    if token_validity.revoked:
        raise Unauthorized("the token was revoked", code="token_revoked")
    if token_validity.suspended:
        raise Forbidden("this account is suspended", code="suspended")


async def check_token_again(request: Request) -> None:
    """Raise Unauthorized or Forbidden if the token of a long request has ended since it was checked."""
    claims = request[CLAIMS]
    if time.time() >= claims.exp:
        raise Unauthorized("the token has expired", code="token_expired")
    token = TokenId(claims.sub, claims.jti, claims.session, claims.iat)
    await _refuse_invalid_token(request.app, token, await request.app[TOKEN_VALIDITY_CACHE].get(token))


async def _to_own_user(app: AppValues, claims: Claims, stream_request: Request | None) -> Claims:
    """Return the claims of another issuer's token with the user's id on this server in the place of the issuer's id."""
    assert claims.profile is not None
    known = app[SUBJECTS]
    uid = known.get(claims.sub)
    if uid is None:
        await hold_slot(stream_request)
        uid = await app[STORE].users.user_of_subject(claims.sub, *claims.profile)
        if len(known) >= 50_000:  # about 10 MB
            known.clear()
        known[claims.sub] = uid
    return replace(claims, sub=uid, profile=None)


async def _fetch_key_for(app: AppValues, token: str, stream_request: Request | None) -> None:
    """Fetch the public key that verifies a token, if another issuer uses a key that this process does not have yet."""
    if app[KEY_SET].lacks_key_for(token):
        await hold_slot(stream_request)
    await app[KEY_SET].ensure_key_for(token)


def read_bearer_token(request: Request) -> str:
    """Return the token of the Authorization header (RFC 6750 §2.1). Raises Unauthorized unless there is exactly one."""
    headers = request.headers.getall(hdrs.AUTHORIZATION, [])
    scheme, _, token = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("send `Authorization: Bearer <token>`")
    return token.strip()


def read_ticket(request: Request) -> str:
    """Return the ticket in the URL. Raises BadRequest for two tickets, or for a ticket and a token."""
    found = query_of(request).values(TICKET_PARAMETER)
    if len(found) > 1:
        raise BadRequest("given more than once", code="conflicting_parameters", param=TICKET_PARAMETER)
    if hdrs.AUTHORIZATION in request.headers:
        message = "send a ticket or an Authorization header, not both"
        raise BadRequest(message, code="conflicting_parameters", param=TICKET_PARAMETER)
    return found[0]


async def redeem_ticket(request: Request, ticket: str) -> Claims:
    """Use up a ticket and return its claims. Raises Unauthorized if it, or its token, is unknown, used or expired.

    A HEAD request opens no stream, so it does not use up its ticket.
    """
    keep = request.method == hdrs.METH_HEAD
    claims_json = await request.app[STORE].tickets.redeem(token_digest(ticket), keep=keep)
    if claims_json is None:
        raise Unauthorized("the ticket is unknown, used or expired; ask for another", param=TICKET_PARAMETER)
    claims = _decode_claims(claims_json)
    if time.time() >= claims.exp:
        raise Unauthorized("the token of this ticket has expired", code="token_expired", param=TICKET_PARAMETER)
    return claims


def token_digest(token: str) -> str:
    """Return the SHA-256 of a ticket or a refresh token, in hexadecimal. The store keeps this digest, not the token."""
    return sha256(token.encode()).hexdigest()


async def may_read_operations(request: Request) -> bool:
    """Return whether :func:`require_operations` lets the caller read health details, metrics and the like."""
    try:
        await require_operations(request)
    except ApiError:
        return False
    return True


async def require_operations(request: Request) -> None:
    """Raise Unauthorized or Forbidden unless the caller may read metrics, details of the readiness, and the version.

    By default anybody on this machine may read them, if the server listens on this machine only, no proxy stands before
    it, and the request names this machine. Otherwise a request needs a token: the setting ``operations_token``, or a
    token with the scope ``admin``.
    """
    config = request.app[CONFIG]
    if config.operations == "open" or (config.operations == "auto" and _is_local(config, request)):
        return
    if hdrs.AUTHORIZATION not in request.headers:
        raise Unauthorized("this needs the operations token of the server, or a token with the scope admin")
    token = read_bearer_token(request)
    secret = config.operations_token
    if secret and hmac.compare_digest(token.encode(), secret.encode()):
        return
    claims = await authenticate_token(request.app, token)
    if ADMIN_SCOPE not in claims.scopes:
        raise Forbidden("the token lacks the scope admin")


def _is_local(config: Config, request: Request) -> bool:
    """Return whether the request comes from this machine, and its `Host` is a name of this machine.

    The name of another site can be made to lead to 127.0.0.1 (DNS rebinding). Then a page of that site could read what
    is open to this machine, but its browser sends the site's name as `Host`.
    """
    # A proxy shows itself by one of these. Behind a proxy on this machine every client seems to be on this machine.
    if any(name in request.headers for name in (config.forwarded_header, "Forwarded", "X-Forwarded-For", "Via")):
        return False
    try:  # only HTTP/1.0 may leave `Host` out, and no browser speaks that
        named = urlsplit("//" + request.headers.get(hdrs.HOST, LOCAL_NAME)).hostname or ""
    except ValueError:
        return False
    return _is_loopback(config.host) and _is_loopback(named)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == LOCAL_NAME or host.lower().endswith("." + LOCAL_NAME)
