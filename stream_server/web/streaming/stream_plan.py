"""From a request's parameters to what the hub is asked: who, what, from where. All refusals happen here."""

import asyncio
import re
import secrets
from typing import NamedTuple

from aiohttp import web

from filters.error import ParameterError
from filters.home import Home
from filters.kind import KINDS, PERSONAL_KINDS, Kinds
from filters.rule import SavedRules
from filters.subscription import Subscription
from stream_server.errors import BadRequest, Forbidden, Unavailable
from stream_server.events.entry import LOG_START, Position
from stream_server.hub.client import SubscribeRequest
from stream_server.hub.framing import Framing
from stream_server.hub.hub import Hub
from stream_server.hub.messages import Gap
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.viewer import Viewer
from stream_server.web.http.app_keys import CLAIMS, HUB, STORE, SUBSCRIPTION_PARSER
from stream_server.web.streaming.stream_start import StreamStart, resolve_start

LAST_EVENT_ID_HEADER = "Last-Event-ID"

EXPLAIN_PARAMETER = "explain"
"""The parameter by which a stream's messages say why they matched."""

USER_STREAM_KINDS = (*KINDS, *PERSONAL_KINDS)
"""What one's own stream can be asked for, and is made of if it is not."""

HEAD_WAIT_SECONDS = 5.0
"""How long a client waits here that knows more of the log than this worker does yet."""


_NUMBER_PATTERN = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


class StreamPlan(NamedTuple):
    """What a stream or a poll is to do."""

    subscribe_request: SubscribeRequest
    known_gap: Gap | None


async def plan_stream(
    request: web.Request,
    parameters: dict[str, str],
    framing: Framing,
    *,
    impersonal: bool | None = None,
    start_parameter: str = "since",
) -> StreamPlan:
    """Check everything and pin the position: from here on nothing that matches is missed.

    ``parameters`` holds the filters, ``explain`` and, as ``start_parameter``, where to begin; with ``impersonal`` the stream is
    the same for all who ask for it, whatever its filters are. Raises errors.ApiError or filters' ParameterError.
    """
    since, explain = parameters.pop(start_parameter, None), pop_flag(parameters, EXPLAIN_PARAMETER)
    subscription = request.app[SUBSCRIPTION_PARSER].parse(parameters, explain=explain, impersonal=impersonal)
    _require_scopes(subscription.required_scopes - request[CLAIMS].scopes)
    start = await _read_start(request, since, start_parameter)
    viewer = None if subscription.viewer_independent else await _load_viewer(request)
    position = await _pin_position(request, start)  # before the rules are read: what changes them since is read on
    subscription, rules_known = await _with_saved_rules(request, subscription)
    personal = None
    if viewer is not None and subscription.uses_me:
        personal, following = _make_private_view(request, viewer, position)
        subscription = subscription.with_following(following)
    return _make_plan(request, subscription, framing, position, start, viewer, personal, rules_known)


async def plan_user_stream(request: web.Request, parameters: dict[str, str], framing: Framing) -> StreamPlan:
    """The same for the stream of what concerns the asking user, which takes ``since`` and ``kinds`` only."""
    since = parameters.pop("since", None)
    kinds = read_user_stream_kinds(parameters)
    start = await _read_start(request, since)
    viewer = await _load_viewer(request)
    position = await _pin_position(request, start)
    personal, following = _make_private_view(request, viewer, position, is_user_stream=True)
    subscription = Subscription([Home(viewer.user_id, following)], [kinds])
    return _make_plan(request, subscription, framing, position, start, viewer, personal)


def read_user_stream_kinds(parameters: dict[str, str]) -> Kinds:
    """Of what kinds one's own stream is to be, all if it is not said; raises ParameterError, also for a filter."""
    for name in parameters:
        if name != "kinds":
            message = f"your own stream takes since and kinds, not {name[:40]!r}"
            raise ParameterError(message, param=name[:40], code="unknown_parameter")
    return (
        Kinds.parse_known(parameters["kinds"], USER_STREAM_KINDS) if "kinds" in parameters else Kinds(USER_STREAM_KINDS)
    )


async def _load_viewer(request: web.Request) -> Viewer:
    """What the asking user may see, true at a place that this worker has reached."""
    hub = request.app[HUB]
    viewer = await hub.viewer_cache.get(request[CLAIMS].sub)
    await wait_for_head(hub, viewer.read_at)
    return viewer


async def _with_saved_rules(request: web.Request, subscription: Subscription) -> tuple[Subscription, Position]:
    """With the user's saved rules, if they are asked for, as at a place that this worker has reached."""
    if subscription.find_base(SavedRules.name) is None:
        return subscription, LOG_START
    hub, uid = request.app[HUB], request[CLAIMS].sub
    saved, known = await request.app[STORE].rules.get_all(uid)
    await wait_for_head(hub, known)
    return subscription.replace_base(await hub.saved_rules.build(uid, saved)), known


async def _pin_position(request: web.Request, start: StreamStart | None) -> Position:
    hub = request.app[HUB]
    position = hub.head if start is None else start.position
    await wait_for_head(hub, position)
    return position


def _make_private_view(
    request: web.Request, viewer: Viewer, position: Position, *, is_user_stream: bool = False
) -> tuple[PrivateView, set[str]]:
    """A stream's own copy of whom its user follows: as at the hub's head, changed by what it reads behind that.

    The set is the filter's too, also while it is empty: it fills when the user begins to follow somebody.
    """
    known, following = request.app[HUB].head, set(viewer.following)
    return PrivateView(
        viewer, position, following=following, following_read_at=known, is_own_stream=is_user_stream
    ), following


def _make_plan(
    request: web.Request,
    subscription: Subscription,
    framing: Framing,
    position: Position,
    start: StreamStart | None,
    viewer: Viewer | None,
    private_view: PrivateView | None,
    rules_known: Position = LOG_START,
) -> StreamPlan:
    claims = request[CLAIMS]
    ask = SubscribeRequest(
        secrets.token_hex(8), claims.sub, claims.jti, subscription, framing, position,
        viewer=viewer, private_view=private_view, rules_read_at=rules_known,
    )  # fmt: skip
    return StreamPlan(ask, None if start is None else start.known_gap)


def _require_scopes(missing: frozenset[str]) -> None:
    if missing:
        message = f"this needs the scope {' '.join(sorted(missing))}"
        raise Forbidden(message)


async def _read_start(request: web.Request, since: str | None, start_parameter: str = "since") -> StreamStart | None:
    """``Last-Event-ID`` wins over ``since``, given as ``start_parameter``: EventSource repeats the URL it was made with."""
    last_event_id = request.headers.get(LAST_EVENT_ID_HEADER)
    value, param = (last_event_id, LAST_EVENT_ID_HEADER) if last_event_id else (since, start_parameter)
    if value is None:
        return None
    log = request.app[STORE].log
    return await resolve_start(value, log, now_ms=log.now_ms, param=param, is_received=request.app[HUB].ring.contains)


async def wait_for_head(hub: Hub, position: Position) -> None:
    """Wait until this worker has heard what another has told the client already."""
    try:
        async with asyncio.timeout(HEAD_WAIT_SECONDS):
            while hub.head.n < position.n:  # noqa: ASYNC110 - rare, short; an Event would cost every entry a look
                await asyncio.sleep(0.01)
    except TimeoutError:
        message = "this server is behind the log; try again"
        raise Unavailable(message, retry_after=1) from None


def pop_flag(parameters: dict[str, str], name: str) -> bool:
    """Take the flag ``name`` out of the parameters, False if it is not there; raises BadRequest."""
    text = parameters.pop(name, "false")
    if text not in {"true", "false"}:
        raise BadRequest("true or false", param=name)
    return text == "true"


def pop_number(parameters: dict[str, str], name: str, default: float, minimum: float, maximum: float) -> float:
    """Take the number ``name`` out of the parameters; raises BadRequest outside ``minimum`` to ``maximum``."""
    text = parameters.pop(name, None)
    value = default if text is None else float(text) if _NUMBER_PATTERN.fullmatch(text) else float("nan")
    if not minimum <= value <= maximum:
        message = f"must be a number from {minimum:g} to {maximum:g}"
        raise BadRequest(message, param=name)
    return value
