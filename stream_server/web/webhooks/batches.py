"""Reads what the next request of a webhook contains: what a long poll of the subscription would answer now.

Everything that depends on the user is read anew for each batch: relations, saved rules. So a post that was hidden after
a failed attempt is not in the next one.
"""

import time
from typing import NamedTuple

import msgspec

from filters.parts import Parts
from stream_server.events.position import Position
from stream_server.hub.client import StreamToken, SubscribeRequest
from stream_server.hub.delivery import Delivery
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.messages import RULES_FORGOTTEN, Gap, StreamNotice
from stream_server.hub.poll import LongPoll, PollResult
from stream_server.store.social.webhooks import ClaimedWebhook
from stream_server.web.http.app_keys import HUB, STORE
from stream_server.web.http.opening import FREE_OPENING
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.route import AppValues
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.long_poll import encode_item
from stream_server.web.streaming.stream_plan import bind_filters, load_viewer, parse_filters, wait_for_head
from stream_server.web.streaming.stream_start import StreamStart, resolve_start
from stream_server.web.streaming.subscription_parser import (
    SUBSCRIPTION_PARAMETER,
    SUBSCRIPTION_PARSER,
    NamedFilters,
    describe,
)
from stream_server.web.webhooks.requests import WebhookEvents

MAX_BODY_BYTES = 256 * 1024
"""Most bytes of the events of one request. A single event may be larger."""


class Batch(NamedTuple):
    """The events of one request.

    Attributes:
        events: The JSON of each event.
        end: Everything up to this position has been read, and what matches is in this batch.
        has_more: Whether the log had more entries behind ``end``.
        reason: Why the hub ended the reading. Then there are no events. None otherwise.
    """

    events: list[bytes]
    end: Position
    has_more: bool
    reason: DisconnectReason | None = None

    def body(self, claimed: ClaimedWebhook) -> bytes:
        """Return the JSON of the request: that of a poll, with its type, the name of the subscription, and the part."""
        events = [msgspec.Raw(event) for event in self.events]
        name = claimed.subscription.name
        return msgspec.json.encode(WebhookEvents(name, events, self.end.cursor, self.has_more, claimed.part))


async def read_batch(
    app: AppValues, claimed: ClaimedWebhook, after: Position, until: Position | None, wait_seconds: float
) -> Batch:
    """Return the events behind ``after``, as soon as there is one, or none after ``wait_seconds``.

    The batch ends at ``until`` at the latest, if this is given. Raises ApiError or ParameterError if the filters cannot
    be used, and Unavailable if Redis does not answer.
    """
    webhook = claimed.subscription.webhook
    assert webhook is not None
    request, gaps = await _plan(app, claimed, after, webhook.scopes)
    polled = await LongPoll(app[HUB], request, limit=webhook.batch, initial_gaps=gaps).run(wait_seconds)
    if polled.disconnect_reason is not None:
        return Batch([], after, has_more=False, reason=polled.disconnect_reason)
    return _cut(polled, after, until, app[HUB].now_ms())


async def _plan(
    app: AppValues, claimed: ClaimedWebhook, after: Position, scopes: frozenset[str]
) -> tuple[SubscribeRequest, list[Gap]]:
    """Return the hub's request for the events of a webhook, and the gaps before them, as for a stream."""
    hub, uid, kept = app[HUB], claimed.uid, claimed.subscription
    filters = app[SUBSCRIPTION_PARSER].read(dict(kept.parameters))
    assert not isinstance(filters, NamedFilters)
    payer = app[LIMITS].time.payer(f"webhooks of {uid}", uid)
    await payer.wait_for_turn()  # the webhooks of a user, and what the user sends, share the user's time
    subscription = await parse_filters(app, filters, scopes, payer, FREE_OPENING)
    if claimed.part is not None:
        subscription = subscription.narrowed(Parts(len(kept.parts), {claimed.part: claimed.cursor}))
    log, start = app[STORE].log, StreamStart(after)
    if not hub.ring.contains(after):  # else this process has received the entry
        start = await resolve_start(after.cursor, log, now_ms=log.now_ms, param=SUBSCRIPTION_PARAMETER)
    viewer = None if subscription.viewer_independent else await load_viewer(app, uid, FREE_OPENING)
    await wait_for_head(hub, start.position)
    bound = await bind_filters(app, uid, subscription, viewer, start, FREE_OPENING, payer)
    gaps = [] if start.known_gap is None else [start.known_gap]
    if bound.position != start.position:  # the rules of before are forgotten
        missed = bound.position.n - start.position.n
        gaps.append(Gap(start.position.cursor, bound.position, RULES_FORGOTTEN, missed))
    request = SubscribeRequest(
        claimed.reader, uid, StreamToken(""), bound.subscription, select_framing(NDJSON, chunked=True), bound.position,
        viewer=bound.viewer, private_view=bound.private_view, opened_ms=time.time_ns() / 1e6,
        parameters=describe({SUBSCRIPTION_PARAMETER: kept.name}),
    )  # fmt: skip
    return request, gaps


def _cut(polled: PollResult, after: Position, until: Position | None, now_ms: int) -> Batch:
    """Return the first events of a poll: those up to ``until``, in at most :data:`MAX_BODY_BYTES`."""
    events, size, end = list[bytes](), 0, after
    if until is not None and any(isinstance(item, Gap) and item.end > until for item in polled.items):
        until = None  # the gap has lost events of the batch that ended there, so it must not begin behind them
    for item in polled.items:
        position = _position_of(item)
        if until is not None and position > until:
            return Batch(events, until, has_more=True)
        event = encode_item(item, now_ms)
        if events and size + len(event) > MAX_BODY_BYTES:
            return Batch(events, end, has_more=True)
        events.append(event)
        size, end = size + len(event), position
    if until is not None and polled.position > until:
        return Batch(events, until, has_more=True)
    return Batch(events, polled.position, polled.has_more)


def _position_of(item: Delivery | Gap | StreamNotice) -> Position:
    if isinstance(item, Delivery):
        return item.entry.position
    return item.end if isinstance(item, Gap) else item.position
