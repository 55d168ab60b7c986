"""An index of subscriptions: finds those that match an event without asking each of them."""

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from filters.base import FilterFailure
from filters.event import Event
from filters.index_keys import Key
from filters.postings import Postings
from filters.subscription import Subscription
from filters.verification import Verification

T = TypeVar("T", bound=Hashable)

MAX_NARROWING_GROUPS = 64
"""Number of sets of narrowing filters that are checked once per event. Items with other sets are checked one by one."""


class _NarrowingGroup(Generic[T]):
    """The items whose subscriptions have equal narrowing filters, so that one check of these filters serves all items.

    ``representative`` is the subscription that makes this check. It is None in the group for all items that came when
    there were too many groups: the index checks each of these singly.
    """

    __slots__ = ("postings", "representative", "size")

    def __init__(self, representative: Subscription | None, verification: Verification[T]) -> None:
        self.representative = representative
        self.postings: Postings[T] = Postings(verification)
        self.size = 0


class SubscriptionIndex(Generic[T]):
    """An index of items, such as clients, with one subscription each. It finds the items that match an event.

    An item is any hashable object and can be added once. If a filter raises, its item does not match, and the other
    items are not affected.

    Attributes:
        failures: Pairs of an item whose filter raised and the FilterFailure. The caller must empty the list.
        verification: Its list ``unverified`` has the items for which no time was left. The caller must empty the list.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures: list[tuple[T, FilterFailure]] = []
        self.verification: Verification[T] = Verification(clock)
        self._subscriptions: dict[T, Subscription] = {}
        self._group_of_item: dict[T, _NarrowingGroup[T]] = {}
        self._groups: dict[Hashable, _NarrowingGroup[T]] = {}
        self._mixed_group: _NarrowingGroup[T] = _NarrowingGroup(None, self.verification)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, item: T) -> bool:
        return item in self._subscriptions

    @property
    def scanned_count(self) -> int:
        """The number of items that have a filter without index keys. The index calls this filter for every event."""
        return sum(len(group.postings.unindexed) for group in (self._mixed_group, *self._groups.values()))

    def add(self, item: T, subscription: Subscription) -> None:
        """Add an item with its subscription. Raises ValueError if the item is in the index already.

        Raises FilterFailure, and changes nothing, if a filter raises or gives invalid index terms.
        """
        if item in self._subscriptions:
            raise ValueError(f"{item!r} is in the index already")
        terms = subscription.index_terms()
        group = self._find_or_make_group(subscription)
        group.postings.add(item, subscription, terms)
        group.size += 1
        self._group_of_item[item] = group
        self._subscriptions[item] = subscription

    def remove(self, item: T) -> None:
        """Remove an item. Raises KeyError if it is not in the index."""
        subscription = self._subscriptions.pop(item)
        group = self._group_of_item.pop(item)
        group.postings.remove(item, subscription)
        group.size -= 1
        if not group.size and group.representative is not None:
            del self._groups[group.representative.narrowing_key]

    def add_key(self, item: T, key: Key) -> None:
        """Add an index key to an item, after its user followed a user. Events with this key can then match the item."""
        self._group_of_item[item].postings.add_key(item, key)

    def remove_key(self, item: T, key: Key) -> None:
        """Remove an index key from an item, after its user unfollowed a user.

        The key stays if a filter of the item still needs it. So the caller must first remove the unfollowed user from
        the set of followed users.
        """
        subscription = self._subscriptions[item]
        try:
            keys = subscription.candidate_keys()
        except Exception:  # noqa: BLE001 - a plug-in may raise anything; an extra key only costs time
            return
        if keys is None or key not in keys:
            self._group_of_item[item].postings.remove_key(item, key)

    def match(self, event: Event) -> list[T]:
        """Return the items whose subscriptions match the event, each once and in no particular order."""
        self.verification.start_event()
        matched: list[T] = []
        for group in self._groups.values():
            if self._group_passes(group, event):
                matched.extend(group.postings.find(event, self._matches_base))
        if self._mixed_group.size:
            found = self._mixed_group.postings.find(event, self._matches_base)
            matched.extend(item for item in found if self._passes_narrowing(item, event))
        return matched

    def _find_or_make_group(self, subscription: Subscription) -> _NarrowingGroup[T]:
        group = self._groups.get(subscription.narrowing_key)
        if group is None:
            if len(self._groups) >= MAX_NARROWING_GROUPS:
                return self._mixed_group
            group = self._groups[subscription.narrowing_key] = _NarrowingGroup(subscription, self.verification)
        return group

    def _matches_base(self, item: T, event: Event) -> bool:
        try:
            return self._subscriptions[item].matches_base(event)
        except FilterFailure as failed:
            self.failures.append((item, failed))
            return False

    def _passes_narrowing(self, item: T, event: Event) -> bool:
        try:
            return self._subscriptions[item].passes_narrowing(event)
        except FilterFailure as failed:
            self.failures.append((item, failed))
            return False

    def _group_passes(self, group: _NarrowingGroup[T], event: Event) -> bool:
        """Return whether an event passes the group's narrowing filters.

        If a filter raises, the event does not pass, and ``failures`` gets a failure for each item of the group.
        """
        try:
            return group.representative is not None and group.representative.passes_narrowing(event)
        except FilterFailure as failed:
            self.failures.extend((item, failed) for item, own in self._group_of_item.items() if own is group)
            return False
