"""Plans a stream: checks the parameters of a request, and builds the hub's subscribe request.

All refusals happen here.
"""

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
from stream_server.events.position import LOG_START, Position
from stream_server.hub.client import SubscribeRequest
from stream_server.hub.framing import Framing
from stream_server.hub.hub import Hub
from stream_server.hub.messages import Gap
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.viewer import Viewer
from stream_server.web.http.app_keys import CLAIMS, HUB, STORE
from stream_server.web.streaming.stream_start import StreamStart, resolve_start
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER

LAST_EVENT_ID_HEADER = "Last-Event-ID"
"""Header in which an EventSource sends the cursor of the last event it received."""

EXPLAIN_PARAMETER = "explain"
"""Parameter that makes each message of a stream say why it matched."""

USER_STREAM_KINDS = (*KINDS, *PERSONAL_KINDS)
"""Kinds of events that the user stream offers, and sends by default."""

HEAD_WAIT_SECONDS = 5.0
"""Seconds that a request waits for this server's hub to reach a position which the client already knows."""


_NUMBER_PATTERN = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


class StreamPlan(NamedTuple):
    """The result of planning: the hub's subscribe request, and the gap already known before its start position."""

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
    """Check everything that a filter stream needs, and fix its start position.

    From here on it misses no matching event.

    Args:
        request: The HTTP request, with checked claims.
        parameters: The filters, ``explain``, and the start. This function removes those that it reads.
        framing: How the messages are encoded.
        impersonal: True if all callers get the same public events whatever the filters are; None lets the filters
            decide.
        start_parameter: Name of the parameter that holds the start.

    Raises ApiError or the filters' ParameterError.
    """
    since, explain = parameters.pop(start_parameter, None), pop_flag(parameters, EXPLAIN_PARAMETER)
    subscription = request.app[SUBSCRIPTION_PARSER].parse(parameters, explain=explain, impersonal=impersonal)
    _require_scopes(subscription.required_scopes - request[CLAIMS].scopes)
    start = await _read_start(request, since, start_parameter)
    viewer = None if subscription.viewer_independent else await _load_viewer(request)
    position = await _pin_position(
        request, start
    )  # before the rules are read: the stream reads later changes from the log
    subscription, rules_known = await _with_saved_rules(request, subscription)
    personal = None
    if viewer is not None and subscription.uses_me:
        personal, following = _make_private_view(request, viewer, position)
        subscription = subscription.with_following(following)
    return _make_plan(request, subscription, framing, position, start, viewer, personal, rules_known)


async def plan_user_stream(request: web.Request, parameters: dict[str, str], framing: Framing) -> StreamPlan:
    """Plan the stream of what concerns the caller. It accepts ``since`` and ``kinds`` only.

    Otherwise like :func:`plan_stream`.
    """
    since = parameters.pop("since", None)
    kinds = read_user_stream_kinds(parameters)
    start = await _read_start(request, since)
    viewer = await _load_viewer(request)
    position = await _pin_position(request, start)
    personal, following = _make_private_view(request, viewer, position, is_user_stream=True)
    subscription = Subscription([Home(viewer.user_id, following)], [kinds])
    return _make_plan(request, subscription, framing, position, start, viewer, personal)


def read_user_stream_kinds(parameters: dict[str, str]) -> Kinds:
    """Return the kinds of events for a user stream, all by default. Raises ParameterError for any other parameter."""
    for name in parameters:
        if name != "kinds":
            message = f"the user stream accepts since and kinds, not {name[:40]!r}"
            raise ParameterError(message, param=name[:40], code="unknown_parameter")
    return (
        Kinds.parse_known(parameters["kinds"], USER_STREAM_KINDS) if "kinds" in parameters else Kinds(USER_STREAM_KINDS)
    )


async def _load_viewer(request: web.Request) -> Viewer:
    """Load what the caller may see, and wait until this server's hub has reached the position at which it was read."""
    hub = request.app[HUB]
    viewer = await hub.viewer_cache.get(request[CLAIMS].sub)
    await wait_for_head(hub, viewer.read_at)
    return viewer


async def _with_saved_rules(request: web.Request, subscription: Subscription) -> tuple[Subscription, Position]:
    """Add the caller's saved rules if the subscription asks for them.

    Also return the position at which they were read, after this server's hub has reached it.
    """
    if subscription.find_base(SavedRules.name) is None:
        return subscription, LOG_START
    hub, uid = request.app[HUB], request[CLAIMS].sub
    saved, known = await request.app[STORE].rules.get_all(uid)
    await wait_for_head(hub, known)
    return subscription.replace_base(await hub.saved_rules.build(uid, saved)), known


async def _pin_position(request: web.Request, start: StreamStart | None) -> Position:
    """Return the start position, the hub's head by default, after this server's hub has reached it."""
    hub = request.app[HUB]
    position = hub.head if start is None else start.position
    await wait_for_head(hub, position)
    return position


def _make_private_view(
    request: web.Request, viewer: Viewer, position: Position, *, is_user_stream: bool = False
) -> tuple[PrivateView, set[str]]:
    """Create the stream's own copy of the users whom the caller follows. Return it with the set of followed users.

    The copy is as of the hub's head; later entries of the log change it. The filter shares the set, even while it is
    empty, because the set grows when the caller follows somebody.
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
    """Build the subscribe request with a random connection id, and attach the known gap."""
    claims = request[CLAIMS]
    subscribe_request = SubscribeRequest(
        secrets.token_hex(8), claims.sub, claims.jti, subscription, framing, position,
        viewer=viewer, private_view=private_view, rules_read_at=rules_known,
    )  # fmt: skip
    return StreamPlan(subscribe_request, None if start is None else start.known_gap)


def _require_scopes(missing: frozenset[str]) -> None:
    """Raise Forbidden if the token lacks a scope that the filters need."""
    if missing:
        message = f"the token lacks the scope {' '.join(sorted(missing))}"
        raise Forbidden(message)


async def _read_start(request: web.Request, since: str | None, start_parameter: str = "since") -> StreamStart | None:
    """Resolve the start position, or return None to start at the head.

    ``Last-Event-ID`` takes precedence over the start parameter, because an EventSource repeats its original URL.
    """
    last_event_id = request.headers.get(LAST_EVENT_ID_HEADER)
    value, param = (last_event_id, LAST_EVENT_ID_HEADER) if last_event_id else (since, start_parameter)
    if value is None:
        return None
    log = request.app[STORE].log
    return await resolve_start(value, log, now_ms=log.now_ms, param=param, is_received=request.app[HUB].ring.contains)


async def wait_for_head(hub: Hub, position: Position) -> None:
    """Wait until this server's hub has reached ``position``, which another server has already delivered.

    Raises Unavailable after :data:`HEAD_WAIT_SECONDS`.
    """
    try:
        async with asyncio.timeout(HEAD_WAIT_SECONDS):
            while hub.head.n < position.n:  # noqa: ASYNC110 - rare and short; an asyncio.Event would cost time for each entry
                await asyncio.sleep(0.01)
    except TimeoutError:
        message = "this server is behind the log; try again"
        raise Unavailable(message, retry_after=1) from None


def pop_flag(parameters: dict[str, str], name: str) -> bool:
    """Remove the boolean ``name`` from the parameters and return it, False if absent.

    Raises BadRequest if it is invalid.
    """
    text = parameters.pop(name, "false")
    if text not in {"true", "false"}:
        raise BadRequest("true or false", param=name)
    return text == "true"


def pop_number(parameters: dict[str, str], name: str, default: float, minimum: float, maximum: float) -> float:
    """Remove the number ``name`` from the parameters and return it.

    Raises BadRequest unless it is within the bounds.
    """
    text = parameters.pop(name, None)
    value = default if text is None else float(text) if _NUMBER_PATTERN.fullmatch(text) else float("nan")
    if not minimum <= value <= maximum:
        message = f"must be a number from {minimum:g} to {maximum:g}"
        raise BadRequest(message, param=name)
    return value
