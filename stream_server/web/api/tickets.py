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

from stream_server.errors import BadRequest, Unauthorized
from stream_server.security.tokens import Claims
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.responses import encode_response
from stream_server.web.streaming.parameters import TICKET_PARAMETER, query_pairs

TICKET_BYTES = 32
TICKET_TTL_SECONDS = 30

_decode_claims = msgspec.json.Decoder(Claims).decode


async def issue_ticket(request: web.Request) -> web.Response:
    """``POST /v1/streams/ticket``: a ticket that opens one stream in the place of the token, within 30 seconds."""
    ticket = secrets.token_urlsafe(TICKET_BYTES)
    await request.app[STORE].tickets.store(
        _ticket_digest(ticket), msgspec.json.encode(request[CLAIMS]), TICKET_TTL_SECONDS
    )
    return encode_response({"ticket": ticket, "expires_in": TICKET_TTL_SECONDS}, status=201)


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
    kept = await request.app[STORE].tickets.redeem(_ticket_digest(ticket))
    if kept is None:
        raise Unauthorized("the ticket is unknown, used or expired; ask for another", param=TICKET_PARAMETER)
    claims = _decode_claims(kept)
    if time.time() >= claims.exp:
        raise Unauthorized("the token of this ticket has expired", code="token_expired", param=TICKET_PARAMETER)
    return claims


def _ticket_digest(ticket: str) -> str:
    return sha256(ticket.encode()).hexdigest()
