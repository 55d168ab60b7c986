"""The events before a position: the page that a reader asks for who goes back from what a stream has shown."""

from typing import NamedTuple

from filters.rule import SavedRules
from stream_server.errors import BadRequest, InvalidCursor
from stream_server.events.position import LOG_START, Position
from stream_server.hub.client import SubscribeRequest
from stream_server.hub.delivery import Delivery
from stream_server.hub.hub import Hub
from stream_server.hub.look_back import Payer, Scan, ScanEnd, SearchBack
from stream_server.hub.messages import TRIMMED, Framing, Gap
from stream_server.hub.poll import MAX_ANSWER_BYTES
from stream_server.web.http.app_keys import HUB, OPENING, STORE
from stream_server.web.route import Request
from stream_server.web.streaming.looking_back import find_before, looking_back
from stream_server.web.streaming.stream_plan import StreamPlan, plan_stream
from stream_server.web.streaming.stream_start import parse_cursor, parse_time_ms
from stream_server.web.streaming.subscription_parser import NamedFilters, StreamFilters

BEFORE_PARAMETER = "before"
"""The parameter that ends the events: a cursor, an ISO 8601 time or an age, before which all of them are."""


class EventsBefore(NamedTuple):
    """A page of events that are older than a position.

    Attributes:
        items: The events in the order of the log, after the gap that stands where the log begins.
        position: The position before which the next page ends.
        has_more: Whether the log has earlier entries that were asked for.
    """

    items: list[Delivery | Gap]
    position: Position
    has_more: bool


class _EventsBack(SearchBack):
    """Finds the latest events. It also ends after the page of the log with which they take `MAX_ANSWER_BYTES`."""

    __slots__ = ("_byte_count",)

    def __init__(self, hub: Hub, request: SubscribeRequest, payer: Payer, wanted: int) -> None:
        super().__init__(hub, request, payer, wanted)
        self._byte_count = 0

    def _take(self, found: list[Delivery]) -> None:
        super()._take(found)
        self._byte_count += sum(len(delivery.entry.wire) for delivery in found)
        self._is_done = self._is_done or self._byte_count >= MAX_ANSWER_BYTES


async def read_events_before(
    request: Request, filters: StreamFilters, before: str, limit: int, framing: Framing, start_parameter: str
) -> EventsBefore:
    """Return the latest events that match and are older than ``before``, at most ``limit`` of them.

    It takes the turn of a preview, and is charged as one. Raises BadRequest for filters that change along the log and
    for filters that fail, InvalidCursor if ``before`` names no position, and what `plan_stream` and `LookBack.scan`
    raise.
    """
    if isinstance(filters, NamedFilters):
        message = "a subscription is read forward only; send its filters instead"
        raise BadRequest(message, code="conflicting_parameters", param=BEFORE_PARAMETER)
    async with looking_back(request) as payer:
        number = await _number_before(request, before)
        filters = filters._replace(since=filters.since or f"{LOG_START.ms}-{LOG_START.seq}")
        plan = await plan_stream(request, filters, framing, start_parameter, resumes=False)
        opened = plan.subscribe_request
        if opened.subscription.find_base(SavedRules.name) is not None:
            raise BadRequest("saved rules change along the log: send their texts as `rule`", param="rules")
        search = _EventsBack(request.app[HUB], opened, payer, limit)
        last = await find_before(request.app, number) or opened.position
        request[OPENING].give_back()
        scan = await search.scan(last)
    if scan.filters_failed:
        raise BadRequest("a filter failed, or the filters take too long")
    return _make_page(search, scan, plan)


async def _number_before(request: Request, before: str) -> int:
    """Return the smallest id that is not before the position. Raises InvalidCursor for a text that names none."""
    position = parse_cursor(before)
    if position is None:
        position = Position(parse_time_ms(before, await request.app[STORE].log.now_ms(), BEFORE_PARAMETER), 0, 0)
    elif position.seq >= 4096:
        raise InvalidCursor("this cursor is not a position of this log", param=BEFORE_PARAMETER)
    return max(0, position.status_number)


def _make_page(search: SearchBack, scan: Scan, plan: StreamPlan) -> EventsBefore:
    items: list[Delivery | Gap] = [*reversed(search.found)]
    if search.has_more:
        return EventsBefore(items, search.found[-1].entry.position, has_more=True)
    start = plan.subscribe_request.position
    if scan.end is ScanEnd.CUT and scan.oldest is not None:
        return EventsBefore(items, scan.oldest, has_more=True)
    gaps = list(plan.known_gaps)
    if scan.end is ScanEnd.LOST and not gaps and scan.oldest is not None:
        gaps = [Gap(start.cursor, scan.oldest.previous(), TRIMMED, None)]
    return EventsBefore([*gaps, *items], start, has_more=False)
