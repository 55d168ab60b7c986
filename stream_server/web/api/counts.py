"""Counts of past posts by rule, in buckets of a minute, an hour or a day.

The log is scanned backwards, as for the preview of a rule, for a second at most. An answer has the buckets that are
finished, newest first. Its `next` has what is known of the bucket before them, so each bucket comes once, and whole.
"""

import base64
import binascii
from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple

import msgspec
from aiohttp import web
from msgspec import Meta

from filters.narrowing import Kinds
from filters.rule import MAX_RULES, Rules
from filters.rules.rule import NamedRule
from filters.subscription import Subscription
from stream_server.errors import BadRequest
from stream_server.events.position import Position, created_ms, format_iso_time
from stream_server.hub.look_back import CountBack, Scan, ScanEnd
from stream_server.hub.messages import TRIMMED
from stream_server.hub.tally import Tally
from stream_server.store.social.saved_rules import MAX_RULES_PER_USER
from stream_server.web.api.rules import NewRule, parse_rules
from stream_server.web.http.app_keys import CLAIMS, HUB, OPENING, STORE
from stream_server.web.http.fields import Body
from stream_server.web.http.responses import encode_response
from stream_server.web.http.validation import read_body_as
from stream_server.web.limits.processor_time import Payer
from stream_server.web.limits.rate_limits import TRIALS
from stream_server.web.route import Request, Route
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.looking_back import find_before, looking_back
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream
from stream_server.web.streaming.stream_start import parse_time_ms
from stream_server.web.streaming.subscription_parser import SUBSCRIPTION_PARSER, ParsedFilters
from stream_server.wire.counts import RuleCounts

BUCKET_MS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
"""The lengths of buckets in ms. Their borders are those of UTC."""

MAX_BUCKETS = 1440
"""Most buckets of one answer: the minutes of a day."""

MAX_COUNTS = 20_000
"""Most counts of one answer: its buckets, for each rule. So many rules get fewer buckets."""

MAX_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, which is the last that ISO 8601 and Python can write."""

_POSTS = Kinds(("post",))

_Ms = Annotated[int, Meta(ge=0, le=MAX_MS)]
_Number = Annotated[int, Meta(ge=0, le=2**53)]


class CountsBody(Body):
    """The body of ``POST /v1/rules/counts``: rules, the time in which to count, and the length of a bucket."""

    rules: Annotated[
        Annotated[list[NewRule], Meta(min_length=1, max_length=MAX_RULES)] | Literal["saved"],
        Meta(description=f"1 to {MAX_RULES} rules, or `saved` for the caller's saved rules"),
    ]
    start: Annotated[str, Meta(description="an ISO 8601 time, or an age such as -7d")] = msgspec.field(name="from")
    end: Annotated[str | None, Meta(description="likewise; by default now")] = msgspec.field(name="to", default=None)
    every: Literal["minute", "hour", "day"] = "hour"
    next: Annotated[str | None, Meta(description="the `next` of an answer to the same body")] = None


class CountQuestion(NamedTuple):
    """The question of a request for counts.

    Attributes:
        rules: The rules, of which a status must match at least one to count.
        start: Begin of the time, as the client wrote it: ISO 8601, or an age.
        end: Its end, likewise. None for now.
        every_ms: Length of a bucket in ms.
        next: The ``next`` of the page before, or None for the first page.
        impersonal: Whether every caller gets the same counts, of public statuses only.
        since_id, until_id: Ids of statuses, of which only those between count. 0 for none.
    """

    rules: Sequence[NamedRule]
    start: str
    end: str | None
    every_ms: int
    next: str | None
    impersonal: bool = False
    since_id: int = 0
    until_id: int = 0

    @property
    def digest(self) -> str:
        """A short text by which a ``next`` belongs to this question. It does not depend on the times."""
        parts = [(named.id, named.tag, named.rule.text) for named in self.rules]
        return blake2b(msgspec.json.encode((parts, self.every_ms, self.impersonal)), digest_size=6).hexdigest()


class CountedBucket(NamedTuple):
    """The statuses of one bucket, from ``start_ms`` on and before ``end_ms``."""

    start_ms: int
    end_ms: int
    tally: Tally
    is_complete: bool

    def members(self) -> dict[str, object]:
        """Return the bucket as JSON."""
        times = {"from": format_iso_time(self.start_ms), "to": format_iso_time(self.end_ms)}
        return {**times, "complete": self.is_complete, **self.tally.members()}


class CountPage(NamedTuple):
    """One page of an answer: its buckets, newest first, and the ``next`` for the page of older ones."""

    start_ms: int
    end_ms: int
    scanned: int
    buckets: list[CountedBucket]
    next: str | None


class _Rest(msgspec.Struct, array_like=True, frozen=True):
    """The part that is left to count: the time from ``start_ms`` on and before ``end_ms``.

    Only entries before the id ``before`` are left. ``count`` and ``counts`` are what was counted of the last bucket. A
    client may change all of it, and deceives only itself.
    """

    digest: str
    start_ms: _Ms
    end_ms: _Ms
    before: _Number
    count: _Number = 0
    counts: Annotated[tuple[tuple[str, str, _Number], ...], Meta(max_length=MAX_RULES_PER_USER)] = ()

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode()


async def count(request: Request) -> web.Response:
    """``POST /v1/rules/counts``: count past statuses by rule, in buckets; ``next`` goes on where the answer ends."""
    asked = await read_body_as(CountsBody, request)
    async with looking_back(request) as payer:
        rules = await _read_rules(request, asked.rules)
        question = CountQuestion(rules, asked.start, asked.end, BUCKET_MS[asked.every], asked.next)
        page = await count_posts(request, question, payer)
    times = {"from": format_iso_time(page.start_ms), "to": format_iso_time(page.end_ms)}
    buckets = [bucket.members() for bucket in page.buckets]
    return encode_response({**times, "scanned": page.scanned, "buckets": buckets, "next": page.next})


async def _read_rules(request: Request, asked: list[NewRule] | str) -> list[NamedRule]:
    """Return the rules of a body, or the caller's saved ones. Raises BadRequest if one is invalid, or if none is saved.

    A saved rule that no longer parses, because its plug-in is gone, is refused as well: its counts would be wrong.
    """
    if not isinstance(asked, str):
        rules = await parse_rules(request, asked)
        return [NamedRule(f"r{n}", new.tag, rule) for n, (new, rule) in enumerate(zip(asked, rules, strict=True), 1)]
    saved, _ = await request.app[STORE].rules.get_all(request[CLAIMS].sub)
    if not saved:
        raise BadRequest("you have no saved rules", param="rules")
    rules = await parse_rules(request, [NewRule(rule.rule) for rule in saved])
    return [NamedRule(one.id, one.tag, rule) for one, rule in zip(saved, rules, strict=True)]


async def count_posts(request: Request, question: CountQuestion, payer: Payer) -> CountPage:
    """Count the statuses that the caller may see, as far as one look back reaches. ``payer`` pays for the time.

    Raises BadRequest for a time or a ``next`` that is invalid, or if a rule takes too long, and what
    `LookBack.scan` raises.
    """
    app, every = request.app, question.every_ms
    rest = await _read_rest(request, question)
    last_bucket = _floor(rest.end_ms - 1, every)
    most = max(1, min(MAX_BUCKETS, MAX_COUNTS // len(question.rules)))
    start_ms = max(rest.start_ms, last_bucket - (most - 1) * every)
    plan = await _plan(request, question, start_ms, payer)
    counter = CountBack(app[HUB], plan.subscribe_request, payer, every)
    carried = counter.tallies[last_bucket]  # what the page before has counted of this bucket
    carried.count = rest.count
    carried.of_rules.update({(rule, tag): number for rule, tag, number in rest.counts})
    last = await find_before(app, rest.before) or plan.subscribe_request.position
    request[OPENING].give_back()
    scan = await counter.scan(last)
    if scan.filters_failed:
        raise BadRequest("a rule failed, or the rules take too long", param="rules")
    return _make_page(rest, start_ms, every, counter, scan, _lost_until(plan, scan, rest))


async def _plan(request: Request, question: CountQuestion, start_ms: int, payer: Payer) -> StreamPlan:
    """Plan a look back to a time. Raises BadRequest for a time in the future."""
    subscription = await payer.run_in(  # to index a thousand rules takes long
        request.app[SUBSCRIPTION_PARSER].thread,
        lambda: Subscription([Rules(question.rules)], [_POSTS], viewer_independent=question.impersonal),
    )
    since = format_iso_time(start_ms)
    if question.since_id and start_ms == created_ms(question.since_id):
        since = f"{start_ms}-{question.since_id & 4095}"  # the cursor of its entry
    filters = ParsedFilters(subscription, "", since, may_warn=False, are_ready=True)
    named = "from" if question.next is None else "next"
    return await plan_stream(request, filters, select_framing(NDJSON, chunked=True), named, resumes=False)


async def _read_rest(request: Request, question: CountQuestion) -> _Rest:
    """Return what is to be counted: what the page before has left, or else all. Raises BadRequest if it is invalid."""
    if question.next is not None:
        try:
            rest = msgspec.json.decode(base64.urlsafe_b64decode(question.next.encode()), type=_Rest)
        except (msgspec.MsgspecError, binascii.Error, UnicodeError, ValueError):
            raise BadRequest("this is not the `next` of an answer", param="next") from None
        if rest.digest != question.digest or rest.end_ms <= rest.start_ms:
            raise BadRequest("this `next` belongs to another question", param="next")
        return rest
    now_ms = await request.app[STORE].log.now_ms()
    start_ms = parse_time_ms(question.start, now_ms, "from")
    end_ms = now_ms if question.end is None else parse_time_ms(question.end, now_ms, "to")
    for ms, param in ((start_ms, "from"), (end_ms, "to")):
        if ms > now_ms:
            raise BadRequest("this time is in the future", param=param)
    if end_ms <= start_ms:
        raise BadRequest("must be later than `from`", param="to")
    before = _number_at(end_ms)
    if question.since_id:
        start_ms = max(start_ms, created_ms(question.since_id))
    if question.until_id:
        end_ms, before = min(end_ms, created_ms(question.until_id) + 1), min(before, question.until_id)
    if end_ms <= start_ms:
        raise BadRequest("nothing is between the two ids and times", param="until_id")
    return _Rest(question.digest, start_ms, end_ms, before)


def _number_at(ms: int) -> int:
    """Return the smallest id of a time."""
    return max(0, Position(ms, 0, 0).status_number)


def _lost_until(plan: StreamPlan, scan: Scan, rest: _Rest) -> int | None:
    """Return the time in ms from which on the log has all events, or None if nothing of the page is lost."""
    if scan.end is ScanEnd.LOST:
        return rest.end_ms if scan.oldest is None else scan.oldest.ms + 1
    trimmed = [gap.end.ms for gap in plan.known_gaps if gap.reason == TRIMMED]
    if scan.end is ScanEnd.WHOLE and trimmed:
        return trimmed[0] + 2  # the gap ends just before the first entry of the log, which may be trimmed now
    return None


def _make_page(
    rest: _Rest, start_ms: int, every: int, counter: CountBack, scan: Scan, lost_until: int | None
) -> CountPage:  # fmt: skip
    """Return the finished buckets of a scan that goes back to ``start_ms`` or less far, and what is left."""
    last_bucket, left, tallies = _floor(rest.end_ms - 1, every), None, counter.tallies
    if scan.end is ScanEnd.CUT and scan.oldest is not None:
        bucket = _floor(scan.oldest.ms, every)
        start_ms = min(bucket + every, rest.end_ms)
        counts = tuple((*rule, count) for rule, count in tallies[bucket].of_rules.items())
        before, count = scan.oldest.status_number, tallies[bucket].count
        left = _Rest(rest.digest, rest.start_ms, start_ms, before, count, counts)
    elif lost_until is not None:
        start_ms = max(start_ms, min(_floor(lost_until, every), last_bucket))
    elif start_ms > rest.start_ms:
        left = _Rest(rest.digest, rest.start_ms, start_ms, _number_at(start_ms))
    buckets = []
    begin, end_ms = last_bucket, rest.end_ms
    while end_ms > start_ms:
        is_complete = lost_until is None or begin >= lost_until
        buckets.append(CountedBucket(max(begin, start_ms), end_ms, tallies[begin], is_complete))
        begin, end_ms = begin - every, begin
    return CountPage(start_ms, rest.end_ms, scan.scanned, buckets, None if left is None else left.encode())


def _floor(ms: int, every: int) -> int:
    return ms - ms % every


ROWS: tuple[Route, ...] = (
    Route(
        "POST", "/v1/rules/counts", count, "stream", body=CountsBody, response=RuleCounts,
        is_streaming=True, is_write=False, limits=(TRIALS,), name="rules.count",
    ),
)  # fmt: skip
