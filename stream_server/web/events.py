"""``/v1/events``: the same events by long polling, one answer a request, with the same cursors."""

from aiohttp import hdrs, web

from stream_server.errors import BadRequest
from stream_server.hub import control
from stream_server.hub.control import Gap, Notice
from stream_server.hub.poll import Poll, Polled
from stream_server.hub.reader import Picked
from stream_server.web.framing import NDJSON, framing
from stream_server.web.keys import CLAIMS, CONFIG, HUB, SUBSCRIPTIONS
from stream_server.web.parameters import read_parameters
from stream_server.web.stopping import admit
from stream_server.web.stream import PARAMETER_BYTES, expiry
from stream_server.web.subscription import number, plan

WAIT_SECONDS = (25.0, 0.0, 60.0)
LIMIT = (100.0, 1.0, 1000.0)


async def poll(request: web.Request) -> web.Response:
    """``GET`` and ``POST /v1/events``: what matches, as soon as there is one event, or empty after ``wait``.

    The cursor advances either way.
    """
    config, hub = request.app[CONFIG], request.app[HUB]
    parameters = await read_parameters(
        request, PARAMETER_BYTES * config.body_max_bytes, request.app[SUBSCRIPTIONS].separators
    )
    place = _place(parameters)
    wait = number(parameters, "wait", *WAIT_SECONDS)
    limit = number(parameters, "limit", *LIMIT)
    if limit != int(limit):
        raise BadRequest("must be a whole number", param="limit")
    made = await plan(request, parameters, framing(NDJSON, chunked=True), place=place)
    admit(request)
    one = Poll(hub, made.ask, limit=int(limit), lost=made.lost)
    timer = expiry(one.member, request[CLAIMS].exp)
    try:
        polled = await one.run(wait)
    finally:
        timer.cancel()
    return web.Response(
        body=_body(polled, hub.now_ms()),
        headers={hdrs.CONTENT_TYPE: "application/json; charset=utf-8", hdrs.CACHE_CONTROL: "no-store"},
    )


def _place(parameters: dict[str, str]) -> str:
    """By what name it is said where to begin; a refusal of what it says has to tell the one that was given."""
    if "cursor" not in parameters:
        return "since"
    if "since" in parameters:
        message = "`cursor` is another name of `since`; give one of them"
        raise BadRequest(message, code="conflicting_parameters", param="cursor")
    return "cursor"


def _part(item: Picked | Gap | Notice, now_ms: int) -> bytes:
    if isinstance(item, Picked):
        return item.entry.data(item.matched)
    return control.notice(item, now_ms).data


def _body(polled: Polled, now_ms: int) -> bytes:
    parts = [_part(item, now_ms) for item in polled.items]
    if polled.closing is not None:
        parts.append(control.goodbye(polled.position, now_ms, polled.closing).data)
    more = b"true" if polled.more else b"false"
    return b'{"events":[%b],"cursor":"%b","more":%b}' % (b",".join(parts), polled.position.cursor.encode(), more)
