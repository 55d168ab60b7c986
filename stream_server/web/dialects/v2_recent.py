"""Handlers of ``/2/tweets/counts/recent`` and ``/2/tweets/search/recent``: the past as v2 clients ask for it.

Both read the log backwards, as the preview of a rule does, for a second at most. If more is left, `meta` has a
`next_token`, also where a page has fewer Tweets than the client wants, or none.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from aiohttp import web

from filters.error import ParameterError
from filters.narrowing import Kinds
from filters.rule import Rules
from filters.rules.rule import NamedRule, Rule
from filters.subscription import Subscription
from stream_server.errors import BadRequest
from stream_server.events.position import EPOCH_MS, Position, created_ms, format_iso_time, parse_iso_ms
from stream_server.hub.look_back import ScanEnd, SearchBack
from stream_server.web.api.counts import BUCKET_MS, CountQuestion, count_posts
from stream_server.web.dialects.status_text import Json
from stream_server.web.dialects.v2_framing import select_v2_framing
from stream_server.web.dialects.v2_parameters import (
    InvalidValue,
    decode_page_token,
    encode_page_token,
    read_fields,
    read_int,
    read_time,
    read_v2_query,
)
from stream_server.web.http.app_keys import CLAIMS, HUB, OPENING, STORE
from stream_server.web.http.responses import encode_response
from stream_server.web.route import Request
from stream_server.web.streaming.looking_back import find_before, looking_back
from stream_server.web.streaming.stream_plan import plan_stream
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER, ParsedFilters

RECENT_MS = 7 * BUCKET_MS["day"]
"""The time in ms that is searched if a client names no start, as at Twitter."""

PAGE_TOKENS = ("next_token", "pagination_token")
"""Two names of one parameter, as at Twitter."""

_POSTS = Kinds(("post",))


class _Span(NamedTuple):
    """The part of the past that a client asks for.

    Attributes:
        start_ms, end_ms: The times from which on and before which, in ms since 1970.
        since_id, until_id: The ids after which and before which, 0 for none.
    """

    start_ms: int
    end_ms: int
    since_id: int
    until_id: int

    @property
    def since(self) -> str:
        """The later of the two starts, as the start of a stream."""
        if self.since_id and created_ms(self.since_id) >= self.start_ms:
            return f"{created_ms(self.since_id)}-{self.since_id & 4095}"
        return format_iso_time(self.start_ms)

    @property
    def before(self) -> int:
        """The id before which all statuses of the span are."""
        by_time = Position(self.end_ms, 0, 0).status_number
        return min(by_time, self.until_id) if self.until_id else by_time


async def count_recent(request: Request) -> web.Response:
    """``GET /2/tweets/counts/recent``: count the public posts that match ``query``, by minute, hour or day."""
    v2_query = read_v2_query(request)
    granularity = v2_query.get("granularity", "hour")
    if granularity not in BUCKET_MS:
        raise InvalidValue("granularity", granularity, "is not one of [minute,hour,day]")
    await request[OPENING].hold_slot()
    async with looking_back(request) as payer:
        rule = NamedRule("r1", "", await _read_rule(request, v2_query))
        span = await _read_span(request, v2_query)
        question = CountQuestion(
            [rule], format_iso_time(span.start_ms), format_iso_time(span.end_ms), BUCKET_MS[granularity],
            _page_token(v2_query), impersonal=True, since_id=span.since_id, until_id=span.until_id,
        )  # fmt: skip
        try:
            page = await count_posts(request, question, payer)
        except BadRequest as refused:
            if refused.param == "next":  # the name in the native API
                raise InvalidValue("next_token", question.next or "", "belongs to no such question") from None
            raise
    data = [
        {
            "start": format_iso_time(bucket.start_ms),
            "end": format_iso_time(bucket.end_ms),
            "tweet_count": bucket.tally.count,
        }
        for bucket in reversed(page.buckets)
    ]
    meta: Json = {"total_tweet_count": sum(bucket.tally.count for bucket in page.buckets)}
    return encode_response({"data": data, "meta": meta | ({"next_token": page.next} if page.next else {})})


async def search_recent(request: Request) -> web.Response:
    """``GET /2/tweets/search/recent``: find the latest public posts that match ``query``, the newest first."""
    v2_query = read_v2_query(request)
    framing = select_v2_framing(read_fields(v2_query), chunked=True)
    wanted = read_int(v2_query, "max_results", 10, 10, 100)
    order = v2_query.get("sort_order", "recency")
    if order not in {"recency", "relevancy"}:
        raise InvalidValue("sort_order", order, "is not one of [recency,relevancy]")
    app = request.app
    await request[OPENING].hold_slot()
    async with looking_back(request) as payer:
        rule = NamedRule("r1", "", await _read_rule(request, v2_query))
        span = await _read_span(request, v2_query)
        token = _page_token(v2_query)
        before = span.before if token is None else min(span.before, decode_page_token("next_token", token))
        subscription = Subscription([Rules([rule])], [_POSTS], viewer_independent=True)
        filters = ParsedFilters(subscription, "", span.since, may_warn=False, are_ready=True)
        plan = await plan_stream(request, filters, framing, "since_id", resumes=False)
        search = SearchBack(app[HUB], plan.subscribe_request, payer, wanted)
        last = await find_before(app, before) or plan.subscribe_request.position
        request[OPENING].give_back()
        scan = await search.scan(last)
    if scan.filters_failed:
        raise InvalidValue("query", v2_query["query"], "failed, or takes too long")
    next_id: int | None = None
    if search.has_more:
        next_id = search.found[-1].entry.position.status_number
    elif scan.end is ScanEnd.CUT and scan.oldest is not None:
        next_id = scan.oldest.status_number
    frames = [framing.encode_entry(delivery.entry, None) for delivery in search.found]
    return encode_response(_render_page([frame for frame in frames if frame], next_id))


def _render_page(frames: list[bytes], next_id: int | None) -> Json:
    """Return the answer with the Tweets of messages, and with the objects that they expand, each once."""
    messages = [msgspec.json.decode(frame, type=Json) for frame in frames]
    tweets = [message["data"] for message in messages]
    includes: dict[str, dict[str, Json]] = {}
    for message in messages:
        for kind, objects in message.get("includes", {}).items():
            known = includes.setdefault(kind, {})
            for each in objects:
                known.setdefault(each.get("media_key") or each["id"], each)
    meta: Json = {"result_count": len(tweets)}
    if tweets:
        meta |= {"newest_id": tweets[0]["id"], "oldest_id": tweets[-1]["id"]}
    if next_id is not None:
        meta["next_token"] = encode_page_token(next_id)
    page = {"data": tweets, "includes": {kind: list(found.values()) for kind, found in includes.items()}}
    return {**{name: value for name, value in page.items() if value}, "meta": meta}


async def _read_rule(request: Request, v2_query: Mapping[str, str]) -> Rule:
    """Return the rule in ``query``. Raises BadRequest if it is missing or invalid."""
    text = v2_query.get("query", "")
    if not text:
        raise BadRequest("The `query` query parameter can not be empty", code="missing_parameter", param="query")
    try:
        rule = await request.app[SUBSCRIPTION_PARSER].parse_rule(text, request[CLAIMS].sub)
        if logins := rule.logins():
            rule.check_logins(await request.app[STORE].users.resolve_logins(logins))
    except ParameterError as error:
        raise InvalidValue("query", text, f"is not a rule: {error.message}") from None
    return rule


async def _read_span(request: Request, v2_query: Mapping[str, str]) -> _Span:
    """Return the part of the past. Raises InvalidValue for a time or an id that is invalid, or in the future."""
    now_ms = await request.app[STORE].log.now_ms()
    times = {"start_time": now_ms - RECENT_MS, "end_time": now_ms}
    for name in v2_query.keys() & times.keys():
        times[name] = max(EPOCH_MS, parse_iso_ms(read_time(v2_query, name)))
        if times[name] > now_ms:
            raise InvalidValue(name, v2_query[name], "is in the future")
    ids = {"since_id": 0, "until_id": 0}
    for name in ids:
        text = v2_query.get(name, "0")
        if not (text.isascii() and text.isdecimal() and len(text) <= 16 and created_ms(int(text)) <= now_ms):
            raise InvalidValue(name, text, "is not the id of a Tweet")
        ids[name] = int(text)
    span = _Span(max(EPOCH_MS, times["start_time"]), times["end_time"], ids["since_id"], ids["until_id"])
    if span.end_ms <= span.start_ms:
        named = "end_time" if "end_time" in v2_query else "start_time"
        raise InvalidValue(named, v2_query.get(named, ""), "leaves no time between the start and the end")
    return span


def _page_token(v2_query: Mapping[str, str]) -> str | None:
    return next((v2_query[name] for name in PAGE_TOKENS if name in v2_query), None)
