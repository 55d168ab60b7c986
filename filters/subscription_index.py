"""Which of many subscriptions match an event, without asking all of them."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from filters.base import FilterFailure
from filters.event import Event
from filters.index_keys import Key
from filters.postings import Postings
from filters.subscription import Subscription

T = TypeVar("T", bound=Hashable)

MAX_NARROWING_GROUPS = 64
"""So many different narrowings are looked at once an event; the items of rarer ones are asked one by one."""


class _NarrowingGroup(Generic[T]):
    """The items that narrow alike; ``representative`` is a subscription that speaks for all, None if each has its own."""

    __slots__ = ("postings", "representative", "size")

    def __init__(self, representative: Subscription | None) -> None:
        self.representative = representative
        self.postings: Postings[T] = Postings()
        self.size = 0


class SubscriptionIndex(Generic[T]):
    """Items with a subscription each, found by event. An item is anything hashable, and is in here once.

    A filter that raises does not match, and does not keep an event from everyone else. ``failures`` has the items
    for whom that was so, each with its failure, until whoever owns the index empties it.
    """

    def __init__(self) -> None:
        self.failures: list[tuple[T, FilterFailure]] = []
        self._subscriptions: dict[T, Subscription] = {}
        self._group_of_item: dict[T, _NarrowingGroup[T]] = {}
        self._groups: dict[Hashable, _NarrowingGroup[T]] = {}
        self._mixed_group: _NarrowingGroup[T] = _NarrowingGroup(None)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, item: T) -> bool:
        return item in self._subscriptions

    @property
    def scanned_count(self) -> int:
        """How many items have no keys to be found by and are asked about every event."""
        return sum(len(room.postings.unindexed) for room in (self._mixed_group, *self._groups.values()))

    def add(self, item: T, subscription: Subscription) -> None:
        """From now on ``item`` is found by what matches ``subscription``; ValueError if it is in here already.

        Raises Failed where a filter cannot say how it is found; the index is as before then.
        """
        if item in self._subscriptions:
            raise ValueError(f"{item!r} is in the index already")
        leads = subscription.index_terms()
        room = self._find_or_make_group(subscription)
        room.postings.add(item, subscription, leads)
        room.size += 1
        self._group_of_item[item] = room
        self._subscriptions[item] = subscription

    def remove(self, item: T) -> None:
        """``item`` is not found any more; KeyError if it is not in here."""
        subscription = self._subscriptions.pop(item)
        room = self._group_of_item.pop(item)
        room.postings.remove(item, subscription)
        room.size -= 1
        if not room.size and room.representative is not None:
            del self._groups[room.representative.narrowing_key]

    def add_key(self, item: T, key: Key) -> None:
        """``item``'s live set has grown by what ``key`` stands for."""
        self._group_of_item[item].postings.add_key(item, key)

    def remove_key(self, item: T, key: Key) -> None:
        """``item``'s live set, shrunk already, has lost what ``key`` stands for; what else needs the key keeps it."""
        subscription = self._subscriptions[item]
        try:
            keys = subscription.candidate_keys()
        except Exception:  # noqa: BLE001 - a third party's filter may raise anything; a key too many costs time alone
            return
        if keys is None or key not in keys:
            self._group_of_item[item].postings.remove_key(item, key)

    def match(self, event: Event) -> list[T]:
        """The items whose subscriptions match, each once, in no order."""
        matched: list[T] = []
        for room in self._groups.values():
            if self._group_passes(room, event):
                matched.extend(room.postings.find(event, self._matches_base))
        if self._mixed_group.size:
            found = self._mixed_group.postings.find(event, self._matches_base)
            matched.extend(item for item in found if self._passes_narrowing(item, event))
        return matched

    def _find_or_make_group(self, subscription: Subscription) -> _NarrowingGroup[T]:
        room = self._groups.get(subscription.narrowing_key)
        if room is None:
            if len(self._groups) >= MAX_NARROWING_GROUPS:
                return self._mixed_group
            room = self._groups[subscription.narrowing_key] = _NarrowingGroup(subscription)
        return room

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
        """Whether the event passes what all in the room narrow by."""
        try:
            return group.representative is not None and group.representative.passes_narrowing(event)
        except FilterFailure as failed:
            self.failures.extend((item, failed) for item, where in self._group_of_item.items() if where is group)
            return False
