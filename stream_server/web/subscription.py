"""From a request's parameters to what the hub is asked: who, what, from where. All refusals happen here."""

import asyncio
import re
import secrets
from typing import NamedTuple

from aiohttp import web

from filters.combine import Subscription
from filters.error import ParameterError
from filters.home import Home
from filters.kind import KINDS, PERSONAL_KINDS, Kinds
from filters.rule import SavedRules
from stream_server.errors import BadRequest, Forbidden, Unavailable
from stream_server.events import START, Position
from stream_server.hub.control import Gap
from stream_server.hub.group import Framing
from stream_server.hub.hub import Hub
from stream_server.hub.member import Ask
from stream_server.hub.personal import Personal
from stream_server.hub.viewer import Viewer
from stream_server.web.keys import CLAIMS, HUB, STORE, SUBSCRIPTIONS
from stream_server.web.since import Begin, begin

LAST_EVENT_ID = "Last-Event-ID"

EXPLAIN = "explain"
"""The parameter by which a stream's messages say why they matched."""

OWN_KINDS = (*KINDS, *PERSONAL_KINDS)
"""What one's own stream can be asked for, and is made of if it is not."""

REACH_SECONDS = 5.0
"""How long a client waits here that knows more of the log than this worker does yet."""


_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


class Plan(NamedTuple):
    """What a stream or a poll is to do."""

    ask: Ask
    lost: Gap | None


async def plan(
    request: web.Request,
    parameters: dict[str, str],
    framing: Framing,
    *,
    impersonal: bool | None = None,
    place: str = "since",
) -> Plan:
    """Check everything and pin the position: from here on nothing that matches is missed.

    ``parameters`` holds the filters, ``explain`` and, as ``place``, where to begin; with ``impersonal`` the stream is
    the same for all who ask for it, whatever its filters are. Raises errors.ApiError or filters' ParameterError.
    """
    since, explain = parameters.pop(place, None), truth(parameters, EXPLAIN)
    subscription = request.app[SUBSCRIPTIONS].parse(parameters, explain=explain, impersonal=impersonal)
    _require(subscription.scopes - request[CLAIMS].scopes)
    start = await _start(request, since, place)
    viewer = None if subscription.impersonal else await _viewer(request)
    position = await _pinned(request, start)  # before the rules are read: what changes them since is read on
    subscription, rules_known = await _with_rules(request, subscription)
    personal = None
    if viewer is not None and subscription.needs_me:
        personal, following = _following(request, viewer, position)
        subscription = subscription.with_following(following)
    return _planned(request, subscription, framing, position, start, viewer, personal, rules_known)


async def plan_own(request: web.Request, parameters: dict[str, str], framing: Framing) -> Plan:
    """The same for the stream of what concerns the asking user, which takes ``since`` and ``kinds`` only."""
    since = parameters.pop("since", None)
    kinds = own_kinds(parameters)
    start = await _start(request, since)
    viewer = await _viewer(request)
    position = await _pinned(request, start)
    personal, following = _following(request, viewer, position, own=True)
    subscription = Subscription([Home(viewer.user_id, following)], [kinds])
    return _planned(request, subscription, framing, position, start, viewer, personal)


def own_kinds(parameters: dict[str, str]) -> Kinds:
    """Of what kinds one's own stream is to be, all if it is not said; raises ParameterError, also for a filter."""
    for name in parameters:
        if name != "kinds":
            message = f"your own stream takes since and kinds, not {name[:40]!r}"
            raise ParameterError(message, param=name[:40], code="unknown_parameter")
    return Kinds.of(parameters["kinds"], OWN_KINDS) if "kinds" in parameters else Kinds(OWN_KINDS)


async def _viewer(request: web.Request) -> Viewer:
    """What the asking user may see, true at a place that this worker has reached."""
    hub = request.app[HUB]
    viewer = await hub.viewers.get(request[CLAIMS].sub)
    await reach(hub, viewer.known)
    return viewer


async def _with_rules(request: web.Request, subscription: Subscription) -> tuple[Subscription, Position]:
    """With the user's saved rules, if they are asked for, as at a place that this worker has reached."""
    if subscription.base(SavedRules.name) is None:
        return subscription, START
    hub, uid = request.app[HUB], request[CLAIMS].sub
    saved, known = await request.app[STORE].rules.of(uid)
    await reach(hub, known)
    return subscription.with_base(await hub.rulebook.of(uid, saved)), known


async def _pinned(request: web.Request, start: Begin | None) -> Position:
    hub = request.app[HUB]
    position = hub.head if start is None else start.position
    await reach(hub, position)
    return position


def _following(
    request: web.Request, viewer: Viewer, position: Position, *, own: bool = False
) -> tuple[Personal, set[str]]:
    """A stream's own copy of whom its user follows: as at the hub's head, changed by what it reads behind that.

    The set is the filter's too, also while it is empty: it fills when the user begins to follow somebody.
    """
    known, following = request.app[HUB].head, set(viewer.following)
    return Personal(viewer, position, following=following, known=known, own=own), following


def _planned(
    request: web.Request,
    subscription: Subscription,
    framing: Framing,
    position: Position,
    start: Begin | None,
    viewer: Viewer | None,
    personal: Personal | None,
    rules_known: Position = START,
) -> Plan:
    claims = request[CLAIMS]
    ask = Ask(
        secrets.token_hex(8), claims.sub, claims.jti, subscription, framing, position,
        viewer=viewer, personal=personal, rules_known=rules_known,
    )  # fmt: skip
    return Plan(ask, None if start is None else start.lost)


def _require(missing: frozenset[str]) -> None:
    if missing:
        message = f"this needs the scope {' '.join(sorted(missing))}"
        raise Forbidden(message)


async def _start(request: web.Request, since: str | None, place: str = "since") -> Begin | None:
    """``Last-Event-ID`` wins over ``since``, given as ``place``: EventSource repeats the URL it was made with."""
    last_event_id = request.headers.get(LAST_EVENT_ID)
    value, param = (last_event_id, LAST_EVENT_ID) if last_event_id else (since, place)
    if value is None:
        return None
    log = request.app[STORE].log
    return await begin(value, log, now_ms=log.now_ms, param=param, heard=request.app[HUB].ring.holds)


async def reach(hub: Hub, position: Position) -> None:
    """Wait until this worker has heard what another has told the client already."""
    try:
        async with asyncio.timeout(REACH_SECONDS):
            while hub.head.n < position.n:  # noqa: ASYNC110 - rare, short; an Event would cost every entry a look
                await asyncio.sleep(0.01)
    except TimeoutError:
        message = "this server is behind the log; try again"
        raise Unavailable(message, retry_after=1) from None


def truth(parameters: dict[str, str], name: str) -> bool:
    """Take the flag ``name`` out of the parameters, False if it is not there; raises BadRequest."""
    text = parameters.pop(name, "false")
    if text not in {"true", "false"}:
        raise BadRequest("true or false", param=name)
    return text == "true"


def number(parameters: dict[str, str], name: str, default: float, least: float, most: float) -> float:
    """Take the number ``name`` out of the parameters; raises BadRequest outside ``least`` to ``most``."""
    text = parameters.pop(name, None)
    value = default if text is None else float(text) if _NUMBER.fullmatch(text) else float("nan")
    if not least <= value <= most:
        message = f"must be a number from {least:g} to {most:g}"
        raise BadRequest(message, param=name)
    return value
