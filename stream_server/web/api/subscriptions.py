"""Named subscriptions: the server keeps the parameters of a stream and the cursor of what is handled.

A client reads one by ``GET /v1/stream?subscription=NAME`` or ``GET /v1/events?subscription=NAME``, and needs no memory
of its own: it says what it has handled, and begins there when it returns.
"""

from functools import partial
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.events.position import LOG_START, Position, format_iso_time
from stream_server.store.social.parts import MAX_PARTS
from stream_server.store.social.subscriptions import Ack, NamedSubscription, check_name
from stream_server.web.api.webhooks import Deliver, read_webhook, webhook_members
from stream_server.web.http import validation
from stream_server.web.http.app_keys import ACKS, CLAIMS, HUB, LOG_TRIMMER, STORE, TURN
from stream_server.web.http.fields import Body, LogCursor
from stream_server.web.http.opening import FREE_OPENING
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import encode_response
from stream_server.web.http.validation import read_idempotency_key, read_keyed_body
from stream_server.web.limits.rate_limits import POLLS
from stream_server.web.route import AppValues, Request, Route
from stream_server.web.streaming.filtered_stream import refuse_summary
from stream_server.web.streaming.parameters import member_pairs
from stream_server.web.streaming.stream_plan import parse_filters
from stream_server.web.streaming.stream_start import parse_cursor, read_cursor, resolve_start
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARAMETER, SUBSCRIPTION_PARSER
from stream_server.wire.subscriptions import Subscription


class NewSubscription(Body):
    """The body of ``PUT /v1/subscriptions/{subscription}``: the filters, and where a new subscription begins."""

    parameters: Annotated[dict[str, Any], Meta(description="the parameters of `/v1/stream`, without `since`")]
    since: (
        Annotated[
            str, Meta(description="a cursor, a time or an age such as -15m: where a new one begins; else at the newest")
        ]
        | None
    ) = None
    parts: (
        Annotated[
            int,
            Meta(ge=1, le=MAX_PARTS, description="shares a new one among several readers, by this number of parts"),
        ]
        | None
    ) = None
    deliver: Annotated[Deliver, Meta(description="a URL to which the server sends the events")] | None = None


class AckBody(Body):
    """The body of an ack: everything up to this cursor is handled."""

    cursor: LogCursor
    connection: (
        Annotated[str, Meta(max_length=64, description="of a shared one: the connection that received the cursor")]
        | None
    ) = None


class SubscriptionList(msgspec.Struct):
    """The subscriptions of the caller, by their names."""

    subscriptions: list[Subscription]


async def list_all(request: Request) -> web.Response:
    """``GET /v1/subscriptions``: list the caller's subscriptions, and how far behind each is."""
    found = await request.app[STORE].subscriptions.list_all(request[CLAIMS].sub)
    return encode_response({"subscriptions": await _members_of(request, *found)})


async def get(request: Request) -> web.Response:
    """``GET /v1/subscriptions/{subscription}``: read one of the caller's subscriptions."""
    found = await request.app[STORE].subscriptions.get(request[CLAIMS].sub, request.match_info["subscription"])
    (members,) = await _members_of(request, found)
    return encode_response(members)


async def put(request: Request) -> web.Response:
    """``PUT /v1/subscriptions/{subscription}``: make a subscription, or change the parameters of an existing one.

    An existing one keeps its cursor and its parts, so a program may do this at each start. With ``deliver`` the server
    sends the events to a URL, which proves itself before anything changes; without, it sends none any more.
    """
    app, claims, name = request.app, request[CLAIMS], request.match_info["subscription"]
    check_name(name)
    sent, key = await read_keyed_body(NewSubscription, request)
    parameters = dict(member_pairs(sent.parameters, app[SUBSCRIPTION_PARSER].separators))
    for other in ("since", SUBSCRIPTION_PARAMETER):
        if other in parameters:
            raise BadRequest("not a parameter of a subscription's streams", param=f"parameters.{other}")
    filters = app[SUBSCRIPTION_PARSER].read(dict(parameters))
    parsed = await parse_filters(app, filters, claims.scopes, app[LIMITS].payer(request), FREE_OPENING)
    store, cursor = app[STORE], None
    if sent.since is not None:
        start = await resolve_start(sent.since, store.log, now_ms=store.log.now_ms, param="since")
        # A cursor whose entries are lost is kept, so that its first stream begins with the gap.
        cursor = parse_cursor(sent.since) or start.position
    webhook = None
    if sent.deliver is not None:
        refuse_summary(filters)
        webhook = await read_webhook(request, name, sent.deliver, parsed.required_scopes)
    put = await store.subscriptions.put(claims.sub, name, parameters, cursor, key, parts=sent.parts, new=webhook)
    (members,) = await _members_of(request, await store.subscriptions.get(claims.sub, name))
    if put.is_secret_new and isinstance(delivered := members.get("deliver"), dict):
        delivered["secret"], *_ = await store.webhooks.get_secrets(claims.sub, name)
    return encode_response(members, status=201 if put.is_new else 200)


async def remove(request: Request) -> web.Response:
    """``DELETE /v1/subscriptions/{subscription}``: delete a subscription, and end the stream that reads it."""
    name, key = request.match_info["subscription"], read_idempotency_key(request)
    await request.app[STORE].subscriptions.remove(request[CLAIMS].sub, name, key)
    return web.Response(status=204)


async def ack(request: Request) -> web.Response:
    """``POST /v1/subscriptions/{subscription}/ack``: say that everything up to a cursor is handled.

    The answer comes when this is stored, after a second at most.
    """
    name, acks = request.match_info["subscription"], request.app[ACKS]
    check_name(name)
    sent = await validation.read_body_as(AckBody, request)
    cursor = read_cursor(sent.cursor)
    # Another server may have sent a cursor above this head. If it is wrong, it must not take other acks along.
    send = acks.ack_now if cursor > request.app[HUB].head else acks.ack
    waiting = send(Ack(request[CLAIMS].sub, name, cursor, connection=sent.connection or ""))
    if TURN not in request:
        await waiting
    else:
        async with request[TURN].given_back():  # else four acks would hold up all requests of their address
            await waiting
    return web.Response(status=204)


async def _members_of(request: Request, *kept: NamedSubscription) -> list[dict[str, object]]:
    """Return subscriptions of the caller as JSON."""
    app = request.app
    waiting = await app[STORE].webhooks.find_waiting(request[CLAIMS].sub, kept)
    return [_members(app, one, is_waiting=one.name in waiting) for one in kept]


def _members(app: AppValues, kept: NamedSubscription, *, is_waiting: bool) -> dict[str, object]:
    """Return a subscription as JSON. How far behind it is counts to the newest entry that this process has received."""
    head, cursor, log_size = app[HUB].head, kept.cursor, app[LOG_TRIMMER].log_size
    distance = partial(_distance, head, log_size.first_ms)
    members: dict[str, object] = {
        "name": kept.name,
        "parameters": kept.parameters,
        "cursor": cursor.cursor,
        "created": format_iso_time(kept.created_ms),
        "used": format_iso_time(kept.used_ms),
        **distance(cursor),
    }
    if cursor.n < head.n and log_size.kept_seconds is not None:
        now_ms = app[HUB].now_ms()
        next_ms = (log_size.first_ms or now_ms) if cursor == LOG_START else cursor.ms  # which has no time
        members["kept_seconds"] = max(0, round(log_size.kept_seconds - (now_ms - next_ms) / 1000, 3))
    if kept.parts:
        # A process holds each part of a webhook under another name, which begins with its own.
        names = (one.member and one.member.partition(".")[0] if kept.webhook else one.member for one in kept.parts)
        members["parts"] = [
            {"cursor": part.cursor.cursor, **distance(part.cursor), "worker": name}
            for part, name in zip(kept.parts, names, strict=True)
        ]
    if kept.webhook is not None:
        members["deliver"] = webhook_members(kept.webhook, is_waiting=is_waiting)
    return members


def _distance(head: Position, first_ms: int, cursor: Position) -> dict[str, float]:
    """Return how far a cursor is behind the head. ``first_ms`` is the time of the oldest entry, 0 if none is known."""
    behind = max(0, head.n - cursor.n)
    from_ms = max(cursor.ms, first_ms) or head.ms  # the start of the log has no time: it is 0, and not in 1970
    return {"behind": behind, "behind_seconds": max(0, head.ms - from_ms) / 1000 if behind else 0}


_PATH = "/v1/subscriptions/{subscription}"

# fmt: off
ROWS: tuple[Route, ...] = (
    Route("GET", "/v1/subscriptions", list_all, "stream", response=SubscriptionList),
    Route("GET", _PATH, get, "stream", response=Subscription),
    Route("PUT", _PATH, put, "stream", body=NewSubscription, response=Subscription, status=201, other_statuses=(200,),
          extra_error_statuses=(413,)),
    Route("DELETE", _PATH, remove, "stream", status=204),
    Route("POST", f"{_PATH}/ack", ack, "stream", body=AckBody, status=204, is_write=False, limits=(POLLS,),
          extra_error_statuses=(409,)),
)
# fmt: on
