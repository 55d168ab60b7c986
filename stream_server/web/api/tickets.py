"""Tickets: what opens one stream within 30 seconds, the only credential that a URL may carry.

A browser's EventSource cannot set a header. Its page asks for a ticket with the token in a header, and opens the stream
with the ticket: a URL ends in logs and histories, and what is found there is used up. The stream is the token's: it
has its scopes, and ends with it.
"""

import secrets

import msgspec
from aiohttp import web

from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.authentication import ticket_digest
from stream_server.web.http.responses import encode_response

TICKET_BYTES = 32
TICKET_TTL_SECONDS = 30


async def issue_ticket(request: web.Request) -> web.Response:
    """``POST /v1/streams/ticket``: a ticket that opens one stream in the place of the token, within 30 seconds."""
    ticket = secrets.token_urlsafe(TICKET_BYTES)
    await request.app[STORE].tickets.store(
        ticket_digest(ticket), msgspec.json.encode(request[CLAIMS]), TICKET_TTL_SECONDS
    )
    return encode_response({"ticket": ticket, "expires_in": TICKET_TTL_SECONDS}, status=201)
