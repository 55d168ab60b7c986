"""Tickets: a ticket opens one stream within 30 seconds. It is the only credential that a URL may carry.

A browser's EventSource cannot set headers, so its page first requests a ticket, with the token in a header. URLs end
up in logs and histories, so a ticket works only once. The stream has the token's scopes, and ends when the token ends.
"""

import secrets
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.authentication import token_digest
from stream_server.web.http.responses import encode_response

TICKET_BYTES = 32
TICKET_TTL_SECONDS = 30


class Ticket(msgspec.Struct):
    """A single-use credential that opens one stream from a URL."""

    ticket: Annotated[str, Meta(description="for `?ticket=`; valid once")]
    expires_in: Annotated[int, Meta(ge=1, description="seconds")]


async def issue_ticket(request: web.Request) -> web.Response:
    """``POST /v1/streams/ticket``: issue a ticket, which opens one stream without a token within 30 seconds."""
    ticket, claims = secrets.token_urlsafe(TICKET_BYTES), msgspec.json.encode(request[CLAIMS])
    await request.app[STORE].tickets.store(token_digest(ticket), claims, TICKET_TTL_SECONDS)
    return encode_response({"ticket": ticket, "expires_in": TICKET_TTL_SECONDS}, status=201)
