"""From a request's parameters to what the hub is asked: who, what, from where. All refusals happen here."""

import asyncio
import re
import secrets
from typing import NamedTuple

from aiohttp import web

from stream_server.errors import BadRequest, Forbidden, Unavailable
from stream_server.events import Position
from stream_server.hub.control import Gap
from stream_server.hub.group import Framing
from stream_server.hub.hub import Hub
from stream_server.hub.member import Ask
from stream_server.hub.personal import Personal
from stream_server.web.keys import CLAIMS, HUB, STORE, SUBSCRIPTIONS
from stream_server.web.since import Begin, begin

LAST_EVENT_ID = "Last-Event-ID"

REACH_SECONDS = 5.0
"""How long a client waits here that knows more of the log than this worker does yet."""


_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


class Plan(NamedTuple):
    """What a stream or a poll is to do."""

    ask: Ask
    lost: Gap | None


async def plan(request: web.Request, parameters: dict[str, str], framing: Framing) -> Plan:
    """Check everything and pin the position: from here on nothing that matches is missed.

    ``parameters`` holds the filters and ``since``. Raises errors.ApiError or filters' ParameterError.
    """
    since = parameters.pop("since", None)
    subscription = request.app[SUBSCRIPTIONS].parse(parameters)
    claims, hub = request[CLAIMS], request.app[HUB]
    _require(subscription.scopes - claims.scopes)
    start = await _start(request, since)
    personal = None
    if subscription.needs_me:
        following, known = await request.app[STORE].follows.following(claims.sub)
        start = start or Begin(known, None)
        personal = Personal(claims.sub, following, known, start.position)
        subscription = subscription.with_following(following)
        await _reach(hub, known)
    start = start or Begin(hub.head, None)
    await _reach(hub, start.position)
    ask = Ask(secrets.token_hex(8), claims.sub, claims.jti, subscription, framing, start.position, personal)
    return Plan(ask, start.lost)


def _require(missing: frozenset[str]) -> None:
    if missing:
        message = f"this needs the scope {' '.join(sorted(missing))}"
        raise Forbidden(message)


async def _start(request: web.Request, since: str | None) -> Begin | None:
    """``Last-Event-ID`` wins over ``since``: EventSource repeats the URL it was made with."""
    last_event_id = request.headers.get(LAST_EVENT_ID)
    value, param = (last_event_id, LAST_EVENT_ID) if last_event_id else (since, "since")
    if value is None:
        return None
    return await begin(value, request.app[STORE].log, now_ms=request.app[HUB].now_ms(), param=param)


async def _reach(hub: Hub, position: Position) -> None:
    """Wait until this worker has heard what another has told the client already."""
    try:
        async with asyncio.timeout(REACH_SECONDS):
            while hub.head.n < position.n:  # noqa: ASYNC110 - rare, short; an Event would cost every entry a look
                await asyncio.sleep(0.01)
    except TimeoutError:
        message = "this server is behind the log; try again"
        raise Unavailable(message, retry_after=1) from None


def number(parameters: dict[str, str], name: str, default: float, least: float, most: float) -> float:
    """Take the number ``name`` out of the parameters; raises BadRequest outside ``least`` to ``most``."""
    text = parameters.pop(name, None)
    value = default if text is None else float(text) if _NUMBER.fullmatch(text) else float("nan")
    if not least <= value <= most:
        message = f"must be a number from {least:g} to {most:g}"
        raise BadRequest(message, param=name)
    return value
