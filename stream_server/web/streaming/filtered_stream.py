"""Prepares the streams of `/v1/stream`: they have filters of their own, or read a named subscription.

To prepare a stream of filters means to plan it (`stream_plan`), which changes nothing. A stream of a named subscription
also takes the subscription over from the reader before it.
"""

from aiohttp import hdrs

from stream_server.errors import BadRequest, Forbidden
from stream_server.hub.messages import Framing
from stream_server.store.social.subscriptions import Ack
from stream_server.web.http.app_keys import ACKS, CLAIMS, HUB, LEASES, OPENING, STORE
from stream_server.web.http.query import query_of
from stream_server.web.http.request_limits import LIMITS, reject_when_draining
from stream_server.web.http.responses import read_request_id
from stream_server.web.route import Request
from stream_server.web.streaming.leases import Lease
from stream_server.web.streaming.parameters import OF_ONE_REQUEST, read_query_parameters, read_stream_parameters
from stream_server.web.streaming.seats import Seat, find_seat
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream, wait_for_head
from stream_server.web.streaming.stream_start import read_cursor
from stream_server.web.streaming.subscription_parser import (
    SUBSCRIPTION_PARAMETER,
    SUBSCRIPTION_PARSER,
    NamedFilters,
    OwnFilters,
    ParsedFilters,
    StreamFilters,
)


async def prepare_filtered_stream(request: Request, framing: Framing) -> StreamPlan:
    """Return the plan of a stream of `/v1/stream`, and take over the subscription that it reads, if it names one.

    A process remembers what a query asks for, because many clients send it again. Raises as `plan_stream` and
    `take_named_stream` do.
    """
    parser, text = request.app[SUBSCRIPTION_PARSER], request.rel_url.raw_query_string
    filters: StreamFilters
    if request.method == "POST":
        filters = await read_stream_parameters(request, parser.separators, parser.read_stream)
    elif (known := parser.known.get(text)) is not None:
        filters = known
    else:
        filters = parser.read_stream(read_query_parameters(request, parser.separators))
        may_return = OF_ONE_REQUEST.isdisjoint(query_of(request).names)
        if may_return and isinstance(filters, ParsedFilters) and filters.since is None:
            parser.known.remember(text, filters)
    if isinstance(filters, NamedFilters):
        return await take_named_stream(request, filters, framing)
    return await plan_stream(request, filters, framing)


async def take_named_stream(request: Request, named: NamedFilters, framing: Framing) -> StreamPlan:
    """Take a named subscription over for a stream or a poll, and return the plan, which begins behind its cursor.

    1. Ack the cursor of a poll.
    2. Find a seat, and plan the stream from there. This changes nothing, and may refuse the request.
    3. Take the seat. Nothing refuses the stream any more: else nobody would read the subscription, or its parts.

    If the reader before it has acked meanwhile, the last two steps are made again, because what was acked must not come
    again. A HEAD request only plans. The user pays for the entries of the log that close readers before it. Raises as
    `plan_stream`, `find_seat` and `Seat.take` do, Forbidden for a reader token, and RateLimited without room.
    """
    app, claims, limits = request.app, request[CLAIMS], request.app[LIMITS]
    is_dry, store, connection = request.method == hdrs.METH_HEAD, app[STORE], read_request_id()
    if claims.reader is not None:
        raise Forbidden("a reader token has no user, so it has no subscriptions")
    await request[OPENING].hold_slot()
    if named.acked is not None and not is_dry:
        acked = read_cursor(named.acked)
        await app[ACKS].ack_now(Ack(claims.sub, named.name, acked, connection=named.connection or ""))
    is_taken = False
    while not is_taken:
        seat = await find_seat(store, claims.sub, named, connection)
        plan = await _plan_from(seat, request, framing)
        if is_dry:
            break
        is_taken, appended_bytes = await seat.take(store)
        if appended_bytes and limits.are_on:
            limits.charge_appended(request, appended_bytes)
    return plan


async def _plan_from(seat: Seat, request: Request, framing: Framing) -> StreamPlan:
    """Plan the stream that begins at a seat, and refuse it if it could not open. Changes nothing."""
    app, named, kept, membership = request.app, seat.named, seat.kept, seat.membership
    if kept.webhook is not None:
        message = "the server sends the events of this subscription to its webhook"
        raise BadRequest(message, code="conflicting_parameters", param=SUBSCRIPTION_PARAMETER)
    since = {} if seat.start is None else {"since": seat.start.cursor}
    filters = app[SUBSCRIPTION_PARSER].read({**kept.parameters, **since})
    if named.poll_seconds is not None:
        refuse_summary(filters)
    plan = await plan_stream(request, filters, framing, SUBSCRIPTION_PARAMETER, resumes=False)
    if seat.share is not None:  # a live stream asks for no cursors, so what is handled must lie behind the head
        await wait_for_head(app[HUB], seat.share.end)
    reject_when_draining(request)
    if named.poll_seconds is None:
        app[LIMITS].take_stream(request)()  # raises without room
    opened = plan.subscribe_request
    opened = opened._replace(
        connection_id=membership.connection, parameters=named.description, subscription=seat.narrow(opened.subscription)
    )
    shared_by = "" if seat.share is None else membership.connection
    read = Ack(membership.uid, named.name, kept.cursor, kept.created_ms, shared_by)
    lease = None if seat.share is None else Lease(app[LEASES], membership)
    return plan._replace(subscribe_request=opened, subscription=read, lease=lease)


def refuse_summary(filters: OwnFilters) -> None:
    """Raise BadRequest if the filters of a poll or a webhook ask for a summary."""
    if filters.summary_ms:
        message = "a poll or a webhook has no summary: open a stream, or send POST /v1/rules/counts"
        raise BadRequest(message, param="summary")
