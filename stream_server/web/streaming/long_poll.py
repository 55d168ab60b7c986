"""``/v1/events``: the same events by long polling, one answer a request, with the same cursors."""

from aiohttp import hdrs, web

from stream_server.errors import BadRequest
from stream_server.hub import messages
from stream_server.hub.delivery import Delivery
from stream_server.hub.messages import Gap, StreamNotice
from stream_server.hub.poll import LongPoll, PollResult
from stream_server.web.http.app_keys import CLAIMS, CONFIG, HUB, SUBSCRIPTION_PARSER
from stream_server.web.http.drain_check import reject_when_draining
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.parameters import read_stream_parameters
from stream_server.web.streaming.stream import STREAM_BODY_FACTOR, close_at_expiry
from stream_server.web.streaming.stream_plan import plan_stream, pop_number

WAIT_SECONDS_BOUNDS = (25.0, 0.0, 60.0)
LIMIT_BOUNDS = (100.0, 1.0, 1000.0)


async def poll_events(request: web.Request) -> web.Response:
    """``GET`` and ``POST /v1/events``: what matches, as soon as there is one event, or empty after ``wait``.

    The cursor advances either way.
    """
    config, hub = request.app[CONFIG], request.app[HUB]
    parameters = await read_stream_parameters(
        request, STREAM_BODY_FACTOR * config.body_max_bytes, request.app[SUBSCRIPTION_PARSER].separators
    )
    place = _start_parameter(parameters)
    wait = pop_number(parameters, "wait", *WAIT_SECONDS_BOUNDS)
    limit = pop_number(parameters, "limit", *LIMIT_BOUNDS)
    if limit != int(limit):
        raise BadRequest("must be a whole number", param="limit")
    made = await plan_stream(request, parameters, select_framing(NDJSON, chunked=True), start_parameter=place)
    reject_when_draining(request)
    one = LongPoll(hub, made.subscribe_request, limit=int(limit), initial_gap=made.known_gap)
    timer = close_at_expiry(one.client, request[CLAIMS].exp)
    try:
        polled = await one.run(wait)
    finally:
        timer.cancel()
    return web.Response(
        body=_encode_answer(polled, hub.now_ms()),
        headers={hdrs.CONTENT_TYPE: "application/json; charset=utf-8", hdrs.CACHE_CONTROL: "no-store"},
    )


def _start_parameter(parameters: dict[str, str]) -> str:
    """By what name it is said where to begin; a refusal of what it says has to tell the one that was given."""
    if "cursor" not in parameters:
        return "since"
    if "since" in parameters:
        message = "`cursor` is another name of `since`; give one of them"
        raise BadRequest(message, code="conflicting_parameters", param="cursor")
    return "cursor"


def _encode_item(item: Delivery | Gap | StreamNotice, now_ms: int) -> bytes:
    if isinstance(item, Delivery):
        return item.entry.message_json(item.matched_json)
    return messages.notice_message(item, now_ms).data


def _encode_answer(polled: PollResult, now_ms: int) -> bytes:
    parts = [_encode_item(item, now_ms) for item in polled.items]
    if polled.disconnect_reason is not None:
        parts.append(messages.goodbye_message(polled.position, now_ms, polled.disconnect_reason).data)
    more = b"true" if polled.has_more else b"false"
    return b'{"events":[%b],"cursor":"%b","more":%b}' % (b",".join(parts), polled.position.cursor.encode(), more)
