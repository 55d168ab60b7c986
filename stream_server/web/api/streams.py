"""Open streams: list the caller's, end one, let one go on with a new token. And tickets, which open a stream.

Administrators list and end the streams of all users.

A browser's EventSource cannot set headers, so its page first requests a ticket, with the token in a header. URLs end
up in logs and histories, so a ticket works only once, within 30 seconds. It is the only credential that a URL may
carry. The stream has the token's scopes, and ends when the token ends.
"""

import secrets
from contextlib import suppress
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import ApiError, Forbidden, NotFound
from stream_server.events.position import format_iso_time
from stream_server.feed.stream_census import Order
from stream_server.feed.stream_sums import SumOrder
from stream_server.hub.client import StreamToken
from stream_server.hub.disconnect import CLOSED_BY_OPERATOR
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, STORE, STREAMS
from stream_server.web.http.authentication import token_digest
from stream_server.web.http.fields import Id, LogCursor, Login, NonNegativeInt, Timestamp
from stream_server.web.http.paging import MAX_IDS, OlderThan
from stream_server.web.http.responses import encode_response
from stream_server.web.limits.rate_limits import TICKETS
from stream_server.web.route import Request, Route
from stream_server.web.streaming.framing import protocol_of


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


class StreamUser(msgspec.Struct):
    """The user of a stream. ``login`` is null for a deleted account."""

    id: Id
    login: str | None


class AnyStream(OpenStream):
    """One open stream of any user, as administrators see it."""

    user: Annotated[StreamUser | None, Meta(description="null for a stream of a reader token")]
    reader: Annotated[str, Meta(description="the `jti` of its reader token; empty for a stream of a user")]
    process: Annotated[str, Meta(description="the id of its server process")]
    worker: Annotated[int, Meta(ge=1, description="the number of this process on its machine")]
    kind: Annotated[str, Meta(description="`sse`, `ndjson`, `websocket`, `v1` or `v2`")]
    buffer_bytes: Annotated[NonNegativeInt, Meta(description="bytes that its client has not taken yet")]


class AnyStreamPage(msgspec.Struct):
    """A page of the open streams of all processes, the largest first."""

    next: Annotated[str | None, Meta(description="pass it as `before` for the following streams; null at the end")]
    total: Annotated[NonNegativeInt, Meta(description="number of streams on all pages")]
    complete: Annotated[bool, Meta(description="whether all processes have answered in time")]
    streams: list[AnyStream]


class StreamSum(msgspec.Struct):
    """The open streams of one user, or of one reader token, together."""

    user: Annotated[StreamUser | None, Meta(description="null for a reader token")]
    reader: Annotated[str, Meta(description="the `jti` of the reader token; empty for a user")]
    streams: Annotated[NonNegativeInt, Meta(description="number of open streams")]
    delivered: Annotated[NonNegativeInt, Meta(description="events written to them")]
    behind: Annotated[NonNegativeInt, Meta(description="entries of the log by which the slowest is behind")]
    buffer_bytes: Annotated[NonNegativeInt, Meta(description="bytes that their clients have not taken yet")]


class StreamSums(msgspec.Struct):
    """The open streams of all processes, added up by user, the largest first."""

    total: Annotated[NonNegativeInt, Meta(description="number of all open streams, or of those of the user")]
    complete: Annotated[bool, Meta(description="whether all processes have answered in time")]
    users: list[StreamSum]


class StreamSumsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/admin/streams/users``."""

    sort: Annotated[SumOrder, Meta(description="the largest first")] = "streams"
    user: Annotated[Login | None, Meta(description="only the streams of this user")] = None
    count: Annotated[int, Meta(ge=1, le=MAX_IDS, description="maximum number of users")] = 30


class AnyStreamsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/admin/streams``: the order, and perhaps a user."""

    sort: Annotated[Order, Meta(description="the largest first, or the newest")] = "behind"
    user: Annotated[Login | None, Meta(description="only the streams of this user")] = None
    count: Annotated[int, Meta(ge=1, le=MAX_IDS, description="maximum number of items")] = 30
    before: OlderThan | None = None


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


async def list_all(request: Request) -> web.Response:
    """``GET /v1/admin/streams``: list the open streams of all users in all server processes, a page at a time.

    Numbers change between two pages, so a stream may stand on both or on none.
    """
    asked, users = query.parsed_query(request, AnyStreamsQuery), request.app[STORE].users
    uid = await _uid_of(request, asked.user)
    page = await request.app[STREAMS].census.read_page(asked.sort, asked.count, asked.before, uid)
    logins: dict[str, str] = {}
    with suppress(ApiError):  # without Redis, an administrator sees at least the streams of this process
        logins = await users.get_logins(row.uid for row in page.rows if row.uid)
    streams = []
    for row in page.rows:
        members = msgspec.structs.asdict(row)
        uid = members.pop("uid")
        members["user"] = StreamUser(uid, logins.get(uid)) if uid else None
        members["kind"] = protocol_of(members.pop("framing"))
        del members["rank"]
        streams.append(members)
    return encode_response({"next": page.next, "total": page.total, "complete": page.complete, "streams": streams})


async def sum_by_user(request: Request) -> web.Response:
    """``GET /v1/admin/streams/users``: add up the open streams of all server processes by user, the largest first."""
    asked = query.parsed_query(request, StreamSumsQuery)
    uid = await _uid_of(request, asked.user)
    sums, total, complete = await request.app[STREAMS].census.read_sums(asked.sort, asked.count, uid)
    logins: dict[str, str] = {}
    with suppress(ApiError):  # as in the list of streams
        logins = await request.app[STORE].users.get_logins(each.uid for each in sums if each.uid)
    users = [
        StreamSum(
            StreamUser(each.uid, logins.get(each.uid)) if each.uid else None, each.reader, each.streams,
            each.delivered, each.behind, each.buffer,
        )
        for each in sums
    ]  # fmt: skip
    return encode_response(StreamSums(total, complete, users))


async def _uid_of(request: Request, login: str | None) -> str | None:
    """Return the id of the user whose streams are asked for, or None for those of all."""
    if login is None:
        return None
    uid = (await request.app[STORE].users.resolve_logins([login])).get(login.lower())
    if uid is None:
        raise NotFound("unknown user", param="user")
    return uid


async def end(request: Request) -> web.Response:
    """``DELETE /v1/admin/streams/{connection}``: end a stream of any user with the goodbye `closed_by_operator`."""
    connection = request.match_info["connection"]
    found = await request.app[STREAMS].census.find(connection)
    if found is None:
        raise NotFound("there is no such open stream", param="connection")
    await request.app[STORE].open_streams.end_by_operator(
        request[CLAIMS].sub, found.uid, connection, CLOSED_BY_OPERATOR.code, IdempotencyKey.generate()
    )
    return web.Response(status=204)


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
    Route("GET", "/v1/admin/streams", list_all, "admin", AnyStreamsQuery, response=AnyStreamPage,
          extra_error_statuses=(404,), name="streams.list_all"),
    Route("GET", "/v1/admin/streams/users", sum_by_user, "admin", StreamSumsQuery, response=StreamSums,
          extra_error_statuses=(404,), name="streams.sum_by_user"),
    Route("DELETE", "/v1/admin/streams/{connection}", end, "admin", status=204, is_write=False, name="streams.end"),
    Route("POST", "/v1/streams/{connection}/token", prolong, "stream", response=ProlongedStream, is_write=False),
)
# fmt: on
