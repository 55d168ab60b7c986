"""Inverted lists: from the keys of an event, and from where it is, to the items whose base filters match it.

A filter gives leads. What is found by a proof or by a box matches; what is found by a hint, or by nothing at all, has
to be asked.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from filters.boxes import Boxes
from filters.combine import Subscription
from filters.event import Event
from filters.key import EXTRA, Clause, Key, Leads
from filters.trie import Trie

T = TypeVar("T", bound=Hashable)


class Postings(Generic[T]):
    """The items of subscriptions whose narrowing is the same, and is looked at elsewhere."""

    def __init__(self) -> None:
        self.scanned: set[T] = set()
        self._clauses: Trie[T] = Trie()
        self._boxes: Boxes[T] = Boxes()
        self._live_keys: dict[T, set[Key]] = {}
        self._checks: dict[T, Callable[[Event], bool]] = {}
        """How to ask the items that are not all proof."""
        self._extra = 0
        """How many clauses have a key that an event makes for rules alone."""

    def add(self, item: T, subscription: Subscription, leads: Sequence[Leads | None]) -> None:
        """List ``item`` under what its bases need: ``leads`` are the subscription's."""
        for base, found_by in zip(subscription.bases, leads, strict=True):
            if not self._add(item, found_by):
                self._checks[item] = base.matches if len(subscription.bases) == 1 else subscription.asks_for

    def remove(self, item: T, subscription: Subscription) -> None:
        """Undo :meth:`add` of the same two, whose leads are what they were."""
        self.scanned.discard(item)
        self._checks.pop(item, None)
        for key in self._live_keys.pop(item, ()):
            self._drop(frozenset((key,)), item, proof=False)
        for leads in subscription.leads():
            if leads is not None:
                self._remove(item, leads)

    def add_key(self, item: T, key: Key) -> None:
        """Ask ``item`` also about events with ``key``."""
        keys = self._live_keys.setdefault(item, set())
        if key not in keys:
            keys.add(key)
            self._hold(frozenset((key,)), item, proof=False)

    def remove_key(self, item: T, key: Key) -> None:
        """Do not ask ``item`` about events with ``key`` any more, unless for another of its keys."""
        keys = self._live_keys.get(item)
        if keys is not None and key in keys:
            keys.discard(key)
            self._drop(frozenset((key,)), item, proof=False)

    def find(self, event: Event, ask: Callable[[T, Event], bool]) -> set[T]:
        """The items that match; ``ask`` has the last word where there is no proof."""
        found: set[T] = set()
        if self._boxes:
            self._boxes.find(event, found)
        asked: set[T] = set(self.scanned) if self.scanned else set()
        if self._clauses:
            self._clauses.find(event.keys if self._extra else event.plain_keys, found, asked)
        if asked:
            asked -= found
            found.update(self._ask(asked, event, ask))
        return found

    def _ask(self, items: set[T], event: Event, ask: Callable[[T, Event], bool]) -> list[T]:
        """Those who match. Their filters are asked at first hand; if one raises, all once more, in earnest."""
        checks = self._checks
        try:
            return [item for item in items if checks[item](event)]
        except Exception:  # noqa: BLE001 - a third party's filter may raise anything
            return [item for item in items if ask(item, event)]

    def _add(self, item: T, leads: Leads | None) -> bool:
        """List ``item`` by one of its filters; True if that is found by proofs and boxes alone."""
        if leads is None:
            self.scanned.add(item)
            return False
        if leads.boxes:
            self._boxes.add(item, leads.boxes)
        for clause in leads.proofs:
            self._hold(clause, item, proof=True)
        for clause in leads.hints:
            if leads.live:
                self.add_key(item, *clause)
            else:
                self._hold(clause, item, proof=False)
        return not leads.hints and not leads.live

    def _remove(self, item: T, leads: Leads) -> None:
        if leads.boxes:
            self._boxes.remove(item, leads.boxes)
        for clause in leads.proofs:
            self._drop(clause, item, proof=True)
        for clause in () if leads.live else leads.hints:
            self._drop(clause, item, proof=False)

    def _hold(self, clause: Clause, item: T, *, proof: bool) -> None:
        self._clauses.add(clause, item, proof=proof)
        self._extra += _is_extra(clause)

    def _drop(self, clause: Clause, item: T, *, proof: bool) -> None:
        """Take ``item`` off a list, and the list away with its last one: churn must not leave a trace."""
        self._clauses.remove(clause, item, proof=proof)
        self._extra -= _is_extra(clause)


def _is_extra(clause: Clause) -> bool:
    for key in clause:  # noqa: SIM110 - a generator takes twice as long
        if key[:1] == EXTRA:
            return True
    return False
