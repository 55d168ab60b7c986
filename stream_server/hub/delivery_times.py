"""Histograms of the time from the log to the sockets of live clients, one for each kind of filter.

The clock is read once for each slice of a flush, and not for each client. All events of the slice count with the age
of the oldest one, so a time is an upper bound: at most by the pause between two flushes. The age is measured by the
wall clock of this machine against the time that Redis gave to the entry, in whole milliseconds.
"""

from bisect import bisect_left
from collections.abc import Iterator

from filters.follow import Follow, Home
from filters.rule import Rules, SavedRules
from filters.subscription import Subscription

COMBINED, OTHER = "combined", "other"
"""Instead of the name of a filter: several filters in one subscription, and the filters of plug-ins."""

FILTER_KINDS = ("track", Follow.name, "locations", Rules.name, "sample", "firehose", "user", COMBINED, OTHER)

BUCKET_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram's buckets in seconds. Longer times are in one more."""

_KIND_BY_NAME = {Home.name: "user", SavedRules.name: Rules.name}


def filter_kind(subscription: Subscription) -> int:
    """Return the kind of a subscription's filter, as an index of :data:`FILTER_KINDS`."""
    names = {_KIND_BY_NAME.get(base.name, base.name) for base in subscription.bases}
    name = names.pop() if len(names) == 1 else COMBINED
    return FILTER_KINDS.index(name if name in FILTER_KINDS else OTHER)


class DeliveryTimes:
    """The histograms of all kinds of filters."""

    __slots__ = ("_counts", "_events", "_sums")

    def __init__(self) -> None:
        self._events: dict[int, int] = {}
        self._counts = [[0] * (len(BUCKET_SECONDS) + 1) for _ in FILTER_KINDS]
        self._sums = [0.0] * len(FILTER_KINDS)

    def add(self, kind: int, events: int) -> None:
        """Count events of the slice that is being written, once for each client."""
        self._events[kind] = self._events.get(kind, 0) + events

    def end_slice(self, age_ms: float) -> None:
        """Add the events of the slice to the histograms. ``age_ms`` is the age of the oldest one in milliseconds."""
        if not self._events:
            return
        seconds = age_ms / 1000 if age_ms > 0 else 0.0
        bucket = bisect_left(BUCKET_SECONDS, seconds)
        for kind, count in self._events.items():
            self._counts[kind][bucket] += count
            self._sums[kind] += count * seconds
        self._events.clear()

    def histograms(self) -> Iterator[tuple[str, list[int], float]]:
        """Yield each kind of filter, the counts of its buckets (the last one is unbounded), and the sum of seconds."""
        yield from zip(FILTER_KINDS, self._counts, self._sums, strict=True)
