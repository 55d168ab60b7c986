"""Tickets: what opens one stream within 30 seconds, the only credential that a URL may carry.

A browser's EventSource cannot set a header. Its page asks for a ticket with the token in a header, and opens the stream
with the ticket: a URL ends in logs and histories, and what is found there is used up. The stream is the token's: it
has its scopes, and ends with it.
"""

import secrets
import time
from hashlib import sha256

import msgspec
from aiohttp import hdrs, web

from stream_server.auth import Claims
from stream_server.errors import BadRequest, Unauthorized
from stream_server.web.answers import encoded
from stream_server.web.keys import CLAIMS, STORE
from stream_server.web.parameters import TICKET, query_pairs

TICKET_BYTES = 32
TTL_SECONDS = 30

_decode = msgspec.json.Decoder(Claims).decode


async def issue(request: web.Request) -> web.Response:
    """``POST /v1/streams/ticket``: a ticket that opens one stream in the place of the token, within 30 seconds."""
    ticket = secrets.token_urlsafe(TICKET_BYTES)
    await request.app[STORE].tickets.put(_digest(ticket), msgspec.json.encode(request[CLAIMS]), TTL_SECONDS)
    return encoded({"ticket": ticket, "expires_in": TTL_SECONDS}, status=201)


def given(request: web.Request) -> str | None:
    """The ticket in the URL, None where there is none; raises BadRequest for two, or one beside a token."""
    found = [value for name, value in query_pairs(request) if name == TICKET]
    if not found:
        return None
    if len(found) > 1:
        raise BadRequest("given twice", code="conflicting_parameters", param=TICKET)
    if hdrs.AUTHORIZATION in request.headers:
        message = "a ticket stands in the place of the Authorization header; send one of them"
        raise BadRequest(message, code="conflicting_parameters", param=TICKET)
    return found[0]


async def redeemed(request: web.Request, ticket: str) -> Claims:
    """What the token said for which the ticket was issued; the ticket is used up by this.

    Raises Unauthorized, ``token_expired`` where the token has ended since.
    """
    kept = await request.app[STORE].tickets.take(_digest(ticket))
    if kept is None:
        raise Unauthorized("the ticket is unknown, used or expired; ask for another", param=TICKET)
    claims = _decode(kept)
    if time.time() >= claims.exp:
        raise Unauthorized("the token of this ticket has expired", code="token_expired", param=TICKET)
    return claims


def _digest(ticket: str) -> str:
    return sha256(ticket.encode()).hexdigest()
