"""Counts of events: by rule, in buckets of the past, and in the windows of a stream with `summary`."""

from typing import Annotated

from msgspec import Meta

from stream_server.wire.objects import Answer, Count, Timestamp


class RuleCount(Answer, frozen=True):
    """How many events one rule matched. ``id`` is that of a saved rule, or ``r1`` for the first rule of a request."""

    id: str
    tag: str
    count: Count


class CountBucket(Answer, frozen=True, rename={"start": "from", "end": "to"}):
    """The number of statuses from the time ``from`` on and before the time ``to``, and how many each rule matched.

    ``complete`` is false if the log no longer has all events of this time. ``counts`` leaves out rules without a match.
    """

    start: Timestamp
    end: Timestamp
    complete: bool
    count: Count
    counts: tuple[RuleCount, ...] = ()


class RuleCounts(Answer, frozen=True, rename={"start": "from", "end": "to"}):
    """A page of counts, the newest bucket first.

    If ``next`` is not null, send the same request with it: the next page goes on with the bucket before.
    """

    start: Timestamp
    end: Timestamp
    scanned: Annotated[int, Meta(description="entries of the log, of any kind", extra_json_schema={"minimum": 0})]
    buckets: tuple[CountBucket, ...] = ()
    next: str | None = None
