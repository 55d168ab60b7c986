"""Plans a stream: checks the parameters of a request, may refuse it, and builds the hub's subscribe request.

Three positions of the log belong to a plan::

    log   --- start ------------- read_at -------- head --->

*start*: the stream begins after it; by default it is the head (`AT_HEAD`). *read_at*: where the log ended when Redis
was asked about the user, such as for the relations of a viewer. *head*: what this process has received. What a user may
see is what was read, changed by the entries that come later. So a plan waits until the head is at the start, and at
`read_at`.

The numbers of positions are compared, because numbers have no holes: a head with the number of another position, or a
higher one, has all before it. Times are compared as well where Redis may have lost the other position: new entries
reuse the numbers of lost ones, and have later times.
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from filters.error import ParameterError
from filters.follow import Home
from filters.narrowing import KINDS, PERSONAL_KINDS, Kinds
from filters.rule import Rules, SavedRules
from filters.subscription import Subscription
from filters.suggestion import did_you_mean
from filters.within import Within
from stream_server.errors import Forbidden, Unavailable
from stream_server.events.internal import SavedRule
from stream_server.events.position import Position
from stream_server.hub.client import BoundFilters, StreamToken, SubscribeRequest
from stream_server.hub.hub import Hub
from stream_server.hub.messages import RULES_FORGOTTEN, Framing, Gap
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.viewer import Viewer
from stream_server.security.claims import Reader
from stream_server.store.social.subscriptions import Ack
from stream_server.web.http.app_keys import CLAIMS, HUB, OPENING, STORE
from stream_server.web.http.opening import Opening
from stream_server.web.http.query import query_of
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import read_request_id
from stream_server.web.limits.processor_time import Payer
from stream_server.web.route import AppValues, Request
from stream_server.web.shared_text import shared
from stream_server.web.streaming.followed_names import resolve_followed
from stream_server.web.streaming.leases import Lease
from stream_server.web.streaming.parameters import LAST_EVENT_ID_PARAMETER, read_stream_parameters
from stream_server.web.streaming.stream_start import AT_HEAD, StreamStart, parse_cursor, resolve_start
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER, OwnFilters, ParsedFilters, describe

LAST_EVENT_ID_HEADER = "Last-Event-ID"
"""Header in which an EventSource sends the cursor of the last event that it received, beside its original URL."""

USER_STREAM_KINDS = (*KINDS, *PERSONAL_KINDS)
"""Kinds of events that the user stream offers, and sends by default."""

_ALL_KINDS = Kinds(USER_STREAM_KINDS)

HEAD_WAIT_SECONDS = 5.0
"""Seconds that a request waits for this server's hub to reach a position which the client already knows."""


class StreamPlan(NamedTuple):
    """Input of `open_stream`.

    Attributes:
        subscribe_request: The hub's request for the events.
        known_gaps: What the stream cannot deliver before its start.
        may_warn: Whether the stream may begin with warnings about its filters.
        subscription: The named subscription that it reads, as an ack of its start; None for none.
    """

    subscribe_request: SubscribeRequest
    known_gaps: Sequence[Gap]
    may_warn: bool = True
    subscription: Ack | None = None
    lease: Lease | None = None


async def plan_stream(
    request: Request, filters: OwnFilters, framing: Framing, start_parameter: str = "since", *, resumes: bool = True
) -> StreamPlan:
    """Check a request for a stream of these filters, and return the plan with its start position.

    A request that the front door has read waits for its turn before Redis is asked anything. ``start_parameter`` names
    the start in errors. With ``resumes``, the place of an EventSource takes precedence over that start. Raises
    ApiError, or ParameterError for an invalid filter.
    """
    app, claims, opening = request.app, request[CLAIMS], request[OPENING]
    ready = filters if isinstance(filters, ParsedFilters) and filters.are_ready else None
    if ready is not None:
        subscription = ready.subscription
        if subscription.required_scopes:
            require_scopes(subscription, claims.scopes)
    else:
        payer = app[LIMITS].payer(request)
        subscription = await parse_filters(app, filters, claims.scopes, payer, opening)
    if claims.reader is not None:
        show = _show_to_reader_shared if isinstance(filters, ParsedFilters) else show_to_reader
        subscription = show(subscription, claims.reader)
    start = await _find_start(request, filters.since, start_parameter, resumes=resumes)
    viewer = None
    if not subscription.viewer_independent:
        viewer = await load_viewer(app, claims.sub, opening)
    await wait_for_head(app[HUB], start.position)
    if ready is not None:
        bound = BoundFilters(subscription, start.position_at(app[HUB].head), viewer=viewer)
    else:
        bound = await bind_filters(app, claims.sub, subscription, viewer, start, opening, payer)
    if filters.summary_ms:
        framing = framing._replace(summary_ms=filters.summary_ms)
    return _make_plan(request, filters.description, bound, framing, start, may_warn=filters.may_warn)


async def parse_filters(
    app: AppValues, filters: OwnFilters, scopes: frozenset[str], payer: Payer, opening: Opening
) -> Subscription:
    """Return the parsed filters of a stream. Raises as `plan_stream` does.

    Puts the ids of users in the place of their names in ``follow``. This takes a round trip if it has names, and so do
    rules that name users by login. ``scopes`` are those of the caller's token. Long filters are parsed in a thread, for
    whose time ``payer`` pays.
    """
    if isinstance(filters, ParsedFilters):
        subscription = filters.subscription
    else:
        await opening.hold_slot()
        parameters = filters.parameters
        if not filters.impersonal:  # the protocols of Twitter know ids only
            parameters = await resolve_followed(app[STORE].users, parameters)
        subscription = await app[SUBSCRIPTION_PARSER].parse(filters, parameters, payer)
    rules = subscription.find_base(Rules.name)
    if isinstance(rules, Rules) and (logins := rules.logins()):
        await opening.hold_slot()
        rules.check_logins(await app[STORE].users.resolve_logins(logins))
    require_scopes(subscription, scopes)
    return subscription


def show_to_reader(subscription: Subscription, reader: Reader) -> Subscription:
    """Return the filters of a stream with a reader token: public events only, and within the rule of the token.

    Raises Forbidden for filters that need a user, and if the token's rule is invalid.
    """
    if subscription.uses_me or subscription.find_base(SavedRules.name) is not None:
        raise Forbidden("a reader token has no user, so it has neither saved rules nor followed users")
    return subscription.for_everybody(_parse_within(reader.within) if reader.within else None)


_show_to_reader_shared = lru_cache(256)(show_to_reader)
"""Shares the filters of visitors who ask for the same. Long filters are not kept: they may take 100 KB each."""


@lru_cache(1024)
def _parse_within(text: str) -> Within:
    try:
        return Within.parse(text)
    except ParameterError as error:
        raise Forbidden(f"the token's `within` is not a rule: {error.message}") from error


def require_scopes(subscription: Subscription, scopes: frozenset[str]) -> None:
    """Raise Forbidden unless ``scopes``, those of a token, suffice for the filters."""
    if missing := subscription.required_scopes - scopes:
        raise Forbidden(f"the token lacks the scope {' '.join(sorted(missing))}")


async def bind_filters(
    app: AppValues, uid: str, subscription: Subscription, viewer: Viewer | None, start: StreamStart, opening: Opening,
    payer: Payer,
) -> BoundFilters:  # fmt: skip
    """Return the filters with what depends on the user: saved rules, and the users whom the user follows.

    They begin at ``start``. They begin later if rules that the user had there are forgotten. ``payer`` pays for the
    time that saved rules take.
    """
    hub, rules, private_view = app[HUB], app[STORE].rules, None
    position = start.position_at(hub.head)
    if subscription.find_base(SavedRules.name) is not None:
        await opening.hold_slot()
        saved: Collection[SavedRule]
        saved, position = await (rules.get_all(uid) if start is AT_HEAD else rules.get_all_at(uid, start.position))
        await wait_for_head(hub, position)
        parse_rule = partial(app[SUBSCRIPTION_PARSER].parse_rule, payer=payer)
        built = await payer.run_steps(hub.saved_rules.build(uid, saved, parse_rule))
        subscription = subscription.replace_base(built)
    if viewer is not None and subscription.uses_me:
        private_view, following = make_private_view(app, viewer)
        subscription = subscription.with_following(following)
    return BoundFilters(subscription, position, viewer=viewer, private_view=private_view)


async def plan_user_stream(request: Request, framing: Framing) -> StreamPlan:
    """Plan the caller's own stream (`/v1/stream/user`). Its parameters are only ``since`` and ``kinds``."""
    app = request.app
    parameters = await read_stream_parameters(request, app[SUBSCRIPTION_PARSER].separators, dict)
    description = describe(parameters)
    since = parameters.pop("since", None)
    kinds = read_user_stream_kinds(parameters)
    start = await _find_start(request, since)
    viewer = await load_viewer(app, request[CLAIMS].sub, request[OPENING])
    await wait_for_head(app[HUB], start.position)
    bound = bind_user_filters(app, kinds, viewer, start.position_at(app[HUB].head))
    return _make_plan(request, description, bound, framing, start)


def bind_user_filters(app: AppValues, kinds: Kinds, viewer: Viewer, position: Position) -> BoundFilters:
    """Return the filters of a user's own stream, which begins after ``position``."""
    private_view, following = make_private_view(app, viewer, is_user_stream=True)
    subscription = Subscription([Home(viewer.user_id, following)], [kinds])
    return BoundFilters(subscription, position, viewer=viewer, private_view=private_view)


def read_user_stream_kinds(parameters: dict[str, str]) -> Kinds:
    """Return the event kinds in ``kinds``, by default all. Raises ParameterError for other parameters or kinds."""
    for name in parameters:
        if name != "kinds":
            meant = did_you_mean(name, ("since", "kinds"))
            message = f"the user stream accepts since and kinds, not {name[:40]!r}{meant}"
            raise ParameterError(message, param=name[:40], code="unknown_parameter")
    kinds = parameters.get("kinds")
    return _ALL_KINDS if kinds is None else Kinds.parse_known(kinds, USER_STREAM_KINDS)


async def load_viewer(app: AppValues, uid: str, opening: Opening) -> Viewer:
    """Return a user's follows, blocks and mutes, when the hub has the log entries up to the moment of reading them.

    A viewer in memory is used if the hub has received all that this process wrote, or a block of a moment ago would be
    missing. Raises `Unavailable` if Redis does not answer, or if the hub does not receive these entries in time.
    """
    hub, store = app[HUB], app[STORE]
    known, head = hub.viewer_cache.get_loaded(uid), hub.head
    if known is not None and head >= store.last_written and head.n >= known.read_at.n:
        return known
    await opening.hold_slot()
    viewer = await hub.viewer_cache.get(uid)
    # What was written last may be lost, and then the head never reaches it. So it is not waited for itself.
    head = await store.log.head() if hub.head < store.last_written else viewer.read_at
    await wait_for_head(hub, max(head, viewer.read_at))
    return viewer


def make_private_view(
    app: AppValues, viewer: Viewer, *, is_user_stream: bool = False
) -> tuple[PrivateView, dict[str, None]]:
    """Return a private view (what the caller may see) for one stream, and the users whom the caller follows.

    The stream's filter must use this very dict, not a copy: the view changes it when the caller's follows change. It
    takes half of the memory of a set.
    """
    head, following = app[HUB].head, dict.fromkeys(viewer.following)
    view = PrivateView(viewer, following=following, following_read_at=head, is_own_stream=is_user_stream)
    return view, following


_share_token = lru_cache(1024)(StreamToken)
"""Shares one object among the streams of a token, because thousands of visitors may have the same one."""


def _make_plan(
    request: Request, description: str, bound: BoundFilters, framing: Framing, start: StreamStart, *,
    may_warn: bool = True,
) -> StreamPlan:  # fmt: skip
    """Return the plan of a stream: a subscribe request with a random connection id, and the gaps before the start."""
    claims = request[CLAIMS]
    token = _share_token(claims.jti, claims.session, claims.iat, claims.exp)
    subscribe_request = SubscribeRequest(
        read_request_id(), claims.sub, token, bound.subscription, framing, bound.position,
        viewer=bound.viewer, private_view=bound.private_view,
        opened_ms=time.time_ns() / 1e6, path=shared(request.path), parameters=description,
    )  # fmt: skip
    gaps = [] if start.known_gap is None else [start.known_gap]
    if start is not AT_HEAD and bound.position != start.position:  # the rules of before are forgotten
        missed = bound.position.n - start.position.n
        gaps.append(Gap(start.position.cursor, bound.position, RULES_FORGOTTEN, missed))
    return StreamPlan(subscribe_request, gaps, may_warn)


async def _find_start(
    request: Request, since: str | None, start_parameter: str = "since", *, resumes: bool = True
) -> StreamStart:
    """Return the start of a stream. Raises BadRequest if it is invalid.

    If the stream ``resumes``, it stands in ``Last-Event-ID``, else in ``lastEventId``, else in ``since``, which came as
    ``start_parameter``. An EventSource repeats its URL with the header, and a polyfill appends ``lastEventId`` to the
    URL. So both are newer than ``since``, and the last ``lastEventId`` is the newest. An empty one counts as absent.
    A subscription does not resume there: what a client has received it may not have handled. Nor does a look back.
    """
    text, parameter = request.headers.get(LAST_EVENT_ID_HEADER) if resumes else None, LAST_EVENT_ID_HEADER
    if resumes and not text and LAST_EVENT_ID_PARAMETER in query_of(request).names:
        text, parameter = query_of(request).values(LAST_EVENT_ID_PARAMETER)[-1], LAST_EVENT_ID_PARAMETER
    if not text:
        if since is None:
            return AT_HEAD
        text, parameter = since, start_parameter
    position = parse_cursor(text)
    if position is not None and request.app[HUB].ring.contains(position):
        return StreamStart(position)  # this process has received the entry
    await request[OPENING].hold_slot()
    log = request.app[STORE].log
    return await resolve_start(text, log, now_ms=log.now_ms, param=parameter)


async def wait_for_head(hub: Hub, position: Position) -> None:
    """Wait until this server's hub has reached ``position``. Raises Unavailable after :data:`HEAD_WAIT_SECONDS`."""
    if hub.head.n >= position.n:
        return
    try:
        async with asyncio.timeout(HEAD_WAIT_SECONDS):
            while hub.head.n < position.n:  # noqa: ASYNC110 - rare and short; an asyncio.Event would cost time for each entry
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise Unavailable("this server is behind the log; try again", retry_after=1) from None
