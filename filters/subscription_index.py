"""An index of subscriptions: finds those that match an event without asking each of them.

Each filter gives its index terms. An item found by an exact clause or by a box matches. An item found by a candidate
clause, or an item without index terms, is verified: its filters are called, for a limited time.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from filters.base import FilterFailure
from filters.event import Event
from filters.index_keys import (
    LOWEST_COMMON_KEY,
    LOWEST_TEXT_KEY,
    META_KEY_PREFIX,
    RULE_KEY_PREFIX,
    IndexTerms,
    Key,
)
from filters.inverted_lists import BoxIndex, CompactSet, Trie, with_item, without_item
from filters.narrowing import Kinds
from filters.subscription import Subscription

T = TypeVar("T", bound=Hashable)

MAX_EVENT_SECONDS = 0.02
"""Time in seconds after which the remaining candidates of an event are not verified. It blocks the event loop."""

MAX_COUNTED_SECONDS = 0.004
"""Most time in seconds that counts of one slice, because a pause of the whole process is not the fault of a filter."""

CANDIDATES_PER_SLICE = 4
"""Number of candidates that are verified between two looks at the clock."""


class Verification(Generic[T]):
    """Calls the filters of the items that may match an event, for a limited time for each event.

    Attributes:
        unverified: The items for which no time was left. The caller must empty this list.
        spent_seconds: Time that counts for this event so far. The caller sets it to 0 for the next event.
    """

    __slots__ = ("_monotonic", "spent_seconds", "unverified")

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.unverified: list[T] = []
        self._monotonic = monotonic
        self.spent_seconds = 0.0

    def verify(self, items: Sequence[T], check: Callable[[Sequence[T]], Iterable[T]]) -> list[T]:
        """Return those of ``items`` that match.

        ``check`` gets a few items and returns those that match; it must not raise.
        """
        found: list[T] = []
        at, size, started_at = 0, CANDIDATES_PER_SLICE, self._monotonic()
        while at < len(items):
            if self.spent_seconds > MAX_EVENT_SECONDS:
                self.unverified.extend(items[at:])
                break
            found.extend(check(items[at : at + size]))
            at += size
            ended_at = self._monotonic()
            if ended_at - started_at > 0.001:  # only slow slices count, and after one each slice has one item
                self.spent_seconds += min(ended_at - started_at, MAX_COUNTED_SECONDS)
                size = 1
            started_at = ended_at
        return found


class Postings(Generic[T]):
    """An index of items, such as clients. It finds those whose combinable or standalone filters match an event.

    The caller checks the narrowing filters. ``unindexed`` holds the items with a filter without index terms;
    :meth:`find` calls the filters of these items for every event.
    """

    def __init__(self, verification: Verification[T]) -> None:
        self.unindexed: set[T] = set()
        self._verification = verification
        self._clauses: Trie[T] = Trie()
        self._boxes: BoxIndex[T] = BoxIndex()
        self._by_dynamic_key: dict[Key, CompactSet[T]] = {}
        self._dynamic_keys: dict[T, CompactSet[Key]] = {}
        self._matches: dict[T, Callable[[Event], bool]] = {}  # of the items not found by exact terms alone
        # How many lists of clauses, and how many dynamic keys, use each family of keys, by its first character or
        # LOWEST_TEXT_KEY. While it is 0, events need not compute these keys.
        self._use_counts: defaultdict[str, int] = defaultdict(int)

    def add(self, item: T, subscription: Subscription, index_terms: Sequence[IndexTerms | None]) -> None:
        """Add an item. ``index_terms`` are those of the filters in ``subscription.bases``, in the same order."""
        for base, terms in zip(subscription.bases, index_terms, strict=True):
            if terms is None:
                self.unindexed.add(item)
            else:
                if terms.boxes:
                    self._boxes.add(item, terms.boxes)
                self._change_clauses(item, terms, self._clauses.add, 1)
                if terms.dynamic_keys is not None:
                    self._add_dynamic(item, terms.dynamic_keys)
            if terms is None or terms.candidates or terms.dynamic_keys is not None:  # no proof of a match
                self._matches[item] = base.matches if len(subscription.bases) == 1 else subscription.matches_base

    def remove(self, item: T, subscription: Subscription) -> None:
        """Remove an item. Its subscription must have the same index terms as when :meth:`add` added the item."""
        self.unindexed.discard(item)
        self._matches.pop(item, None)
        if item in self._dynamic_keys:
            self._remove_dynamic(item, self._dynamic_keys.pop(item))
        for terms in subscription.index_terms():
            if terms is not None:
                if terms.boxes:
                    self._boxes.remove(item, terms.boxes)
                self._change_clauses(item, terms, self._clauses.remove, -1)

    def add_key(self, item: T, key: Key) -> None:
        """Add an index key to an item. For events with this key, :meth:`find` then calls the item's filters."""
        self._add_dynamic(item, (key,))

    def remove_key(self, item: T, key: Key) -> None:
        """Remove an index key that :meth:`add_key` added to the item. The item keeps its other keys."""
        keys = self._dynamic_keys.get(item, ())
        if key in keys:
            self._dynamic_keys[item] = without_item(keys, key)
            self._remove_dynamic(item, (key,))

    def find(self, event: Event, match_one: Callable[[T, Event], bool]) -> set[T]:
        """Return the items with a combinable or standalone filter that matches the event.

        If index terms do not prove that an item matches, the method calls the item's filters. If the filter of one of
        several items raises, it asks ``match_one(item, event)`` about each of them: whether the item matches.
        ``match_one`` must not raise.
        """
        found: set[T] = set()
        if self._boxes.crossed_squares:  # every box is listed here, at least under the key for large areas
            self._boxes.find(event, found)
        candidates: set[T] = set(self.unindexed) if self.unindexed else set()
        if not self._clauses.is_empty or self._by_dynamic_key:
            used = self._use_counts
            if used[RULE_KEY_PREFIX]:
                keys = event.rule_keys
            else:
                keys = event.common_keys if used[LOWEST_TEXT_KEY] else event.user_keys
            if used[META_KEY_PREFIX] and event.meta_fields:
                keys = keys.union([added.key for added in event.meta_fields])
            self._clauses.find(keys, found, candidates)
            for key in self._by_dynamic_key.keys() & keys:
                candidates.update(self._by_dynamic_key[key])
        if candidates:
            candidates -= found
            matches = self._matches

            def check(items: Sequence[T]) -> list[T]:
                try:
                    return [item for item in items if matches[item](event)]
                except Exception:  # noqa: BLE001 - a plug-in filter may raise anything
                    return [item for item in items if match_one(item, event)]

            found.update(self._verification.verify(list(candidates), check))
        return found

    def _change_clauses(self, item: T, terms: IndexTerms, change: Callable[..., None], by: int) -> None:
        """Add or remove an item under each clause: ``change`` is the method of the trie, and ``by`` is 1 or -1."""
        for clauses, exact in ((terms.exact, True), (terms.candidates, False)):
            for clause in clauses:
                change(clause, item, exact=exact)
            families = {key[:1] if key < LOWEST_TEXT_KEY else LOWEST_TEXT_KEY for clause in clauses for key in clause}
            for family in families:
                self._use_counts[family] += by

    def _add_dynamic(self, item: T, keys: Iterable[Key]) -> None:
        """Add index keys to an item.

        There may be twenty thousand, for a user's followed users, so each costs few calls.
        """
        known, by_key = self._dynamic_keys.get(item, ()), self._by_dynamic_key
        alone = (item,)
        for key in keys:
            if key not in known:
                known = with_item(known, key)
                by_key[key] = with_item(by_key[key], item) if key in by_key else alone
                if not LOWEST_COMMON_KEY <= key < LOWEST_TEXT_KEY:
                    self._use_counts[key[:1] if key < LOWEST_TEXT_KEY else LOWEST_TEXT_KEY] += 1
        self._dynamic_keys[item] = known

    def _remove_dynamic(self, item: T, keys: Iterable[Key]) -> None:
        by_key = self._by_dynamic_key
        for key in keys:
            if len(by_key[key]) == 1:
                del by_key[key]
            else:
                by_key[key] = without_item(by_key[key], item)
            if not LOWEST_COMMON_KEY <= key < LOWEST_TEXT_KEY:
                self._use_counts[key[:1] if key < LOWEST_TEXT_KEY else LOWEST_TEXT_KEY] -= 1


MAX_NARROWING_GROUPS = 64
"""Number of sets of narrowing filters that are checked once per event. Items with other sets are checked one by one."""


class _NarrowingGroup(Generic[T]):
    """The items whose subscriptions have equal narrowing filters, so that one check of these filters serves all items.

    The subscription ``representative`` makes this check. There may be too many different narrowing filters. Then all
    further items share one group whose ``representative`` is None, and the index checks each of these items singly.

    If the only narrowing filter is ``kinds``, ``kinds`` has its kinds. Most subscriptions are of this form, and a look
    into the set takes the place of the check. Otherwise ``kinds`` is None.
    """

    __slots__ = ("kinds", "postings", "representative", "size")

    def __init__(self, representative: Subscription | None, verification: Verification[T]) -> None:
        self.representative = representative
        alone = representative.narrowing[0] if representative and len(representative.narrowing) == 1 else None
        self.kinds = alone.kinds if type(alone) is Kinds else None
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

    def __init__(self) -> None:
        self.failures: list[tuple[T, FilterFailure]] = []
        self.verification: Verification[T] = Verification()
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
        group = self._groups.get(subscription.narrowing_key)
        if group is None and len(self._groups) >= MAX_NARROWING_GROUPS:
            group = self._mixed_group
        elif group is None:
            group = self._groups[subscription.narrowing_key] = _NarrowingGroup(subscription, self.verification)
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
        self.verification.spent_seconds = 0.0
        matched: list[T] = []
        kind = event.kind
        for group in self._groups.values():
            if self._group_passes(group, event) if group.kinds is None else kind in group.kinds:
                matched.extend(group.postings.find(event, self._matches_base))
        if self._mixed_group.size:
            found = self._mixed_group.postings.find(event, self._matches_base)
            matched.extend(item for item in found if self._passes_narrowing(item, event))
        return matched

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
