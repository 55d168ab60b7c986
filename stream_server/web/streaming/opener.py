"""Opens a stream at once if this process knows all that its plan needs. This is the usual case.

What a token and the text of a filter decide is decided once: their claims and the parsed filters are remembered. The
opener accepts only what the checks of `stream_server.web.http.middleware` and `stream_plan` would accept too. Whatever
it does not know, and each refusal, is left to them.
"""

import time
from functools import lru_cache
from typing import NamedTuple

from aiohttp import HttpVersion11, web

from filters.error import ParameterError
from filters.rule import Rules, SavedRules
from filters.subscription import Subscription
from stream_server.errors import ApiError
from stream_server.events.position import LOG_START, Position
from stream_server.hub.client import SubscribeRequest
from stream_server.hub.framing import Framing
from stream_server.hub.messages import hello_message
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.viewer import Viewer
from stream_server.security.tokens import Claims
from stream_server.web.http.app_keys import AUTH, CLAIMS, CONFIG, HUB, METRICS, REQUEST_ID, STORE, TOKEN_STATUSES
from stream_server.web.http.authentication import TICKET_PARAMETER, token_id
from stream_server.web.http.query import TOKEN_PARAMETERS, parse_pairs
from stream_server.web.http.request_limits import ALLOWANCE, LIMITS, rate_limit_headers
from stream_server.web.http.responses import date_header, read_request_id
from stream_server.web.http.stream_request import StreamRequest
from stream_server.web.limits.rate_limit import CONNECTS
from stream_server.web.streaming.compression import compress_framing, negotiate_content_coding
from stream_server.web.streaming.followed_names import find_names
from stream_server.web.streaming.framing import negotiate_media_type, select_framing
from stream_server.web.streaming.parameters import LAST_EVENT_ID_PARAMETER, join_parameters
from stream_server.web.streaming.response_head import HeadKind, head_pattern
from stream_server.web.streaming.stream import (
    HELLO_LIMITS,
    HELLO_SERVER,
    filter_warnings,
    open_stream_now,
    start_stream,
)
from stream_server.web.streaming.stream_plan import (
    StreamPlan,
    describe,
    make_private_view,
    pop_flag,
    stream_token,
)
from stream_server.web.streaming.stream_start import parse_cursor
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER

PATH = "/v1/stream"

STREAM_SCOPE = "stream"

BEARER = "Bearer "

MAX_FILTER_BYTES = 24 * 2**20
"""Most memory of the filters that are remembered: those of about 8,000 streams that all differ."""

FILTER_BYTES, FILTER_BYTES_PER_CHAR = 2048, 32
"""Memory of a remembered filter, and for each character of its text."""

MAX_ACCEPT_CHARS = 256
"""Longest `Accept` and `Accept-Encoding` whose result is remembered."""

_LEFT_TO_OTHERS = frozenset({"since", "rules", LAST_EVENT_ID_PARAMETER, TICKET_PARAMETER, *TOKEN_PARAMETERS})
"""Parameters that no filter has, or whose filter needs data from Redis."""


class KnownFilter(NamedTuple):
    """The parsed filters of a query, and the query in the form in which the list of open streams shows it.

    ``has_warnings`` is whether a stream with these filters begins with warnings.
    """

    subscription: Subscription
    described: str
    has_warnings: bool


class KnownFilters:
    """The filters of the queries that streams sent lately. The oldest are forgotten above :data:`MAX_FILTER_BYTES`."""

    def __init__(self, app: web.Application) -> None:
        self._parser = app[SUBSCRIPTION_PARSER]
        self._known: dict[str, KnownFilter] = {}
        self._bytes = 0

    def get(self, query: str) -> KnownFilter | None:
        """Return the filters of a query, or None if they need data from Redis or take long to parse.

        Raises ApiError or ParameterError for an invalid query.
        """
        known = self._known.get(query)
        if known is None:
            known = self._parse(query)
            if known is not None:
                self._remember(query, known)
        return known

    def _parse(self, query: str) -> KnownFilter | None:
        pairs = parse_pairs(query)
        if not _LEFT_TO_OTHERS.isdisjoint(name for name, _ in pairs):
            return None
        parameters = join_parameters(pairs, self._parser.separators)
        described = describe(parameters)
        explain = pop_flag(parameters, "explain")
        if find_names(parameters):
            return None
        subscription = self._parser.parse_short(parameters, explain=explain)
        if subscription is None or subscription.find_base(SavedRules.name) is not None:
            return None
        rules = subscription.find_base(Rules.name)
        if isinstance(rules, Rules) and rules.logins():
            return None
        return KnownFilter(subscription, described, bool(filter_warnings(subscription, LOG_START)))

    def _remember(self, query: str, known: KnownFilter) -> None:
        self._known[query] = known
        self._bytes += _weight(query)
        while self._bytes > MAX_FILTER_BYTES:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._bytes -= _weight(oldest)


def _weight(query: str) -> int:
    return FILTER_BYTES + FILTER_BYTES_PER_CHAR * len(query)


class StreamOpener:
    """Opens streams of `GET /v1/stream` for one server process."""

    def __init__(self, app: web.Application) -> None:
        self._app = app
        self._auth, self._statuses, self._limits = app[AUTH], app[TOKEN_STATUSES], app[LIMITS]
        self._hub, self._store, self._config = app[HUB], app[STORE], app[CONFIG]
        self._filters = KnownFilters(app)
        self._heads: dict[tuple[str, str, bool], str] = {}
        self._second = 0

    def open_known(self, request: StreamRequest) -> bool:
        """Open the stream and return True, or return False with nothing changed."""
        fields, asked = request.fields, request.as_aiohttp()
        if request.path != PATH or self._hub.is_stopping or "upgrade" in fields:
            return False
        try:
            claims = self._known_claims(fields.get("authorization", ""))
            known = None if claims is None else self._filters.get(request.query_text)
            if claims is None or known is None or STREAM_SCOPE not in claims.scopes:
                return False
            if not known.subscription.required_scopes <= claims.scopes:
                return False
            plan = self._plan(request, claims, known)
            limits = self._limits
            if plan is None or not limits.has_stream_room(asked) or not limits.use_known(asked, CONNECTS, claims):
                return False
        except (ApiError, ParameterError):
            return False
        request[CLAIMS], request[REQUEST_ID] = claims, read_request_id(fields.get("x-request-id"))
        if known.has_warnings or self._config.cors_origins:
            open_stream_now(asked, *plan)
        else:
            start_stream(asked, plan[0], self._usual_head(asked, *plan), self._hello(plan[0].subscribe_request))
        self._app[METRICS].http.requests["GET", PATH, 200] += 1
        return True

    def _known_claims(self, authorization: str) -> Claims | None:
        """Return the claims of a token that Redis called valid lately. Raises Unauthorized for an invalid one."""
        token = authorization[len(BEARER) :]
        if not authorization.startswith(BEARER) or not self._auth.has_key_for(token):
            return None
        claims = self._auth.verify(token, time.time())
        if claims.profile is not None:
            return None
        status = self._statuses.get_known(token_id(claims))
        return None if status is None or status.granted else claims

    def _plan(self, request: StreamRequest, claims: Claims, known: KnownFilter) -> tuple[StreamPlan, str] | None:
        """Return the plan of a stream and its content type. None if Redis must be asked or waited for."""
        hub, subscription = self._hub, known.subscription
        position = self._start(request)
        if position is None:
            return None
        viewer: Viewer | None = None
        private_view: PrivateView | None = None
        if not subscription.viewer_independent:
            viewer = hub.viewer_cache.get_loaded(claims.sub)
            if viewer is None or hub.head < self._store.last_written or hub.head.n < viewer.read_at.n:
                return None
            if subscription.uses_me:
                private_view, following = make_private_view(self._app, viewer, position)
                subscription = subscription.with_following(following)
        framing, content_type = self._framing(request)
        asked = SubscribeRequest(
            read_request_id(None), claims.sub, stream_token(claims), subscription, framing, position, viewer,
            private_view, LOG_START, None, hub.now_ms(), PATH, known.described,
        )  # fmt: skip
        return StreamPlan(asked, None), content_type

    def _usual_head(self, request: web.Request, plan: StreamPlan, content_type: str) -> bytes:
        """Return the head of a stream without headers for pages of other origins, from a pattern of this second."""
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._heads.clear()
        allowance = request.get(ALLOWANCE)
        limits = {} if allowance is None else rate_limit_headers(allowance)
        key = content_type, plan.subscribe_request.framing.content_coding, allowance is None
        pattern = self._heads.get(key)
        if pattern is None:
            kind = HeadKind(HttpVersion11, content_type, key[1], self._config.compress_streams == "on", ())
            pattern = self._heads[key] = head_pattern(kind, tuple(limits), date_header())
        return (pattern % (request[REQUEST_ID], *limits.values())).encode()

    def _hello(self, asked: SubscribeRequest) -> bytes:
        """Return the first message of a stream without warnings."""
        hello = hello_message(
            asked.position, asked.opened_ms, asked.connection_id, HELLO_LIMITS, HELLO_SERVER, self._config.retry_ms
        )
        return asked.framing.encode_control(hello)

    def _start(self, request: StreamRequest) -> Position | None:
        """Return the position after which the stream begins. None if only Redis knows the cursor of the client."""
        cursor = request.fields.get("last-event-id")
        if not cursor:
            return self._hub.head
        position = parse_cursor(cursor)
        return position if position is not None and self._hub.ring.contains(position) else None

    def _framing(self, request: StreamRequest) -> tuple[Framing, str]:
        accept = request.fields.get("accept", "*/*")
        coding = request.fields.get("accept-encoding") if self._config.compress_streams == "on" else None
        if len(accept) + len(coding or "") > MAX_ACCEPT_CHARS:
            return _select_framing.__wrapped__(accept, coding)
        return _select_framing(accept, coding)


@lru_cache(256)
def _select_framing(accept: str, accept_encoding: str | None) -> tuple[Framing, str]:
    """Return the framing and the content type for the headers of a client. Raises NotAcceptable if none fits."""
    media_type = negotiate_media_type(accept)
    framing = select_framing(media_type, chunked=True)
    if negotiate_content_coding(accept_encoding) != "identity":
        framing = compress_framing(framing)
    return framing, f"{media_type}; charset=utf-8"
