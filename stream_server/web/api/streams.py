"""The caller's open streams: list them, end one, let one go on with a new token. And tickets, which open a stream.

A browser's EventSource cannot set headers, so its page first requests a ticket, with the token in a header. URLs end
up in logs and histories, so a ticket works only once, within 30 seconds. It is the only credential that a URL may
carry. The stream has the token's scopes, and ends when the token ends.
"""

import secrets
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import Forbidden, NotFound
from stream_server.events.position import format_iso_time
from stream_server.hub.client import StreamToken
from stream_server.web.http.app_keys import CLAIMS, STORE, STREAMS
from stream_server.web.http.authentication import token_digest
from stream_server.web.http.fields import LogCursor, NonNegativeInt, Timestamp
from stream_server.web.http.responses import encode_response
from stream_server.web.limits.rate_limits import TICKETS
from stream_server.web.route import Request, Route


class OpenStream(msgspec.Struct):
    """One open stream of the caller, as the list of streams shows it."""

    connection: Annotated[str, Meta(description="the `connection` of the stream's `hello`")]
    path: str
    parameters: Annotated[str, Meta(description="the filters, as a query of at most 500 characters")]
    opened: Timestamp
    expires: Annotated[Timestamp, Meta(description="when its token expires")]
    since: Annotated[LogCursor, Meta(description="the cursor after which it began")]
    cursor: Annotated[LogCursor, Meta(description="the cursor that it has reached")]
    live: Annotated[bool, Meta(description="false while it catches up")]
    delivered: Annotated[NonNegativeInt, Meta(description="events written to it")]
    behind: Annotated[NonNegativeInt, Meta(description="entries of the log between its cursor and the newest")]


class OpenStreamList(msgspec.Struct):
    """The caller's open streams, the oldest first."""

    streams: list[OpenStream]


class ProlongedStream(msgspec.Struct):
    """The time at which the token of the request expires. The stream ends then, unless it gets another token."""

    expires: Timestamp


async def list_streams(request: Request) -> web.Response:
    """``GET /v1/streams``: list the caller's open streams in all server processes, the oldest first."""
    return encode_response({"streams": await request.app[STREAMS].list_streams(request[CLAIMS].sub)})


async def close(request: Request) -> web.Response:
    """``DELETE /v1/streams/{connection}``: end one of the caller's streams with the goodbye `closed_by_user`."""
    if not await request.app[STREAMS].close(request[CLAIMS].sub, request.match_info["connection"]):
        raise _no_such_stream()
    return web.Response(status=204)


async def prolong(request: Request) -> web.Response:
    """``POST /v1/streams/{connection}/token``: let a stream go on with the token of this request.

    The stream then ends when this token ends. It misses nothing and needs no new connection.
    """
    claims, connection, directory = request[CLAIMS], request.match_info["connection"], request.app[STREAMS]
    required = await directory.required_scopes(claims.sub, connection)
    if required is None:
        raise _no_such_stream()
    if missing := required - claims.scopes:
        raise Forbidden(f"the token lacks the scope {' '.join(sorted(missing))}")
    token = StreamToken(claims.jti, claims.session, claims.iat, claims.exp)
    await directory.prolong(claims.sub, connection, token, claims.scopes)
    return encode_response(ProlongedStream(format_iso_time(int(claims.exp * 1000))))


def _no_such_stream() -> NotFound:
    return NotFound("you have no such open stream", param="connection")


TICKET_TTL_SECONDS = 30


class Ticket(msgspec.Struct):
    """A single-use credential that opens one stream from a URL."""

    ticket: Annotated[str, Meta(description="for `?ticket=`; valid once")]
    expires_in: Annotated[int, Meta(ge=1, description="seconds")]


async def issue_ticket(request: Request) -> web.Response:
    """``POST /v1/streams/ticket``: issue a ticket, which opens one stream without a token within 30 seconds."""
    ticket, claims = secrets.token_urlsafe(32), msgspec.json.encode(request[CLAIMS])
    await request.app[STORE].tickets.store(token_digest(ticket), claims, TICKET_TTL_SECONDS)
    return encode_response({"ticket": ticket, "expires_in": TICKET_TTL_SECONDS}, status=201)


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("POST", "/v1/streams/ticket", issue_ticket, "stream", response=Ticket, status=201, is_write=False,
          is_for_readers=True,
          limits=(TICKETS,), name="tickets.issue_ticket"),
    Route("GET", "/v1/streams", list_streams, "stream", response=OpenStreamList, name="streams.list_open"),
    Route("DELETE", "/v1/streams/{connection}", close, "stream", status=204, is_write=False),
    Route("POST", "/v1/streams/{connection}/token", prolong, "stream", response=ProlongedStream, is_write=False),
)
# fmt: on
