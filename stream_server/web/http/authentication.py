"""Who sends a request: from its token or ticket to checked claims."""

import time
from hashlib import sha256

import msgspec
from aiohttp import hdrs, web

from stream_server.errors import BadRequest, Forbidden, Unauthorized
from stream_server.security.tokens import Claims
from stream_server.web.http.app_keys import AUTH, KEY_SET, STORE
from stream_server.web.http.query import query_pairs
from stream_server.web.route import Route

TICKET_PARAMETER = "ticket"
"""Beside the parameters in the URL of a GET; who asks is settled before these are read."""

_decode_claims = msgspec.json.Decoder(Claims).decode


async def authenticate(request: web.Request, route: Route) -> Claims:
    """The claims of the request's token, if it is valid here and now; raises Unauthorized, Forbidden ``suspended``."""
    claims = await _read_claims(request, route)
    standing = await request.app[STORE].sessions.get_token_status(claims.sub, claims.jti)
    if not standing.user_exists:
        raise Unauthorized("the token's user does not exist")
    if standing.revoked:
        raise Unauthorized("the token was revoked", code="token_revoked")
    if standing.suspended:
        raise Forbidden("this account is suspended", code="suspended")
    return claims


async def _read_claims(request: web.Request, route: Route) -> Claims:
    """What the token says, or the ticket where the row takes one; whether that still stands is another question."""
    ticket = read_ticket(request) if route.accepts_ticket else None
    if ticket is not None:
        return await redeem_ticket(request, ticket)
    token = read_bearer_token(request) if route.dialect is None else await route.dialect.read_token(request)
    if KEY_SET in request.app:
        await request.app[KEY_SET].ensure_key_for(token)
    return request.app[AUTH].verify(token, time.time())


def read_bearer_token(request: web.Request) -> str:
    """The token in the Authorization header (RFC 6750 §2.1), the only place where a token is looked for."""
    given = request.headers.getall(hdrs.AUTHORIZATION, [])
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("send `Authorization: Bearer <token>`")
    return token.strip()


def read_ticket(request: web.Request) -> str | None:
    """The ticket in the URL, None where there is none; raises BadRequest for two, or one beside a token."""
    found = [value for name, value in query_pairs(request) if name == TICKET_PARAMETER]
    if not found:
        return None
    if len(found) > 1:
        raise BadRequest("given twice", code="conflicting_parameters", param=TICKET_PARAMETER)
    if hdrs.AUTHORIZATION in request.headers:
        message = "a ticket stands in the place of the Authorization header; send one of them"
        raise BadRequest(message, code="conflicting_parameters", param=TICKET_PARAMETER)
    return found[0]


async def redeem_ticket(request: web.Request, ticket: str) -> Claims:
    """What the token said for which the ticket was issued; the ticket is used up by this.

    Raises Unauthorized, ``token_expired`` where the token has ended since.
    """
    kept = await request.app[STORE].tickets.redeem(ticket_digest(ticket))
    if kept is None:
        raise Unauthorized("the ticket is unknown, used or expired; ask for another", param=TICKET_PARAMETER)
    claims = _decode_claims(kept)
    if time.time() >= claims.exp:
        raise Unauthorized("the token of this ticket has expired", code="token_expired", param=TICKET_PARAMETER)
    return claims


def ticket_digest(ticket: str) -> str:
    return sha256(ticket.encode()).hexdigest()
