"""Which of many subscriptions match an event, without asking all of them."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from filters.base import Failed
from filters.combine import Subscription
from filters.event import Event
from filters.key import Key
from filters.postings import Postings

T = TypeVar("T", bound=Hashable)

ROOMS = 64
"""So many different narrowings are looked at once an event; the items of rarer ones are asked one by one."""


class _Room(Generic[T]):
    """The items that narrow alike; ``narrow`` is a subscription that speaks for all, None if each has its own."""

    __slots__ = ("narrow", "postings", "size")

    def __init__(self, narrow: Subscription | None) -> None:
        self.narrow = narrow
        self.postings: Postings[T] = Postings()
        self.size = 0


class Index(Generic[T]):
    """Items with a subscription each, found by event. An item is anything hashable, and is in here once.

    A filter that raises does not match, and does not keep an event from everyone else. ``failing`` has the items
    for whom that was so, each with its failure, until whoever owns the index empties it.
    """

    def __init__(self) -> None:
        self.failing: list[tuple[T, Failed]] = []
        self._subscriptions: dict[T, Subscription] = {}
        self._room_of: dict[T, _Room[T]] = {}
        self._rooms: dict[Hashable, _Room[T]] = {}
        self._mixed: _Room[T] = _Room(None)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, item: T) -> bool:
        return item in self._subscriptions

    @property
    def scanned(self) -> int:
        """How many items have no keys to be found by and are asked about every event."""
        return sum(len(room.postings.scanned) for room in (self._mixed, *self._rooms.values()))

    def add(self, item: T, subscription: Subscription) -> None:
        """From now on ``item`` is found by what matches ``subscription``; ValueError if it is in here already.

        Raises Failed where a filter cannot say how it is found; the index is as before then.
        """
        if item in self._subscriptions:
            raise ValueError(f"{item!r} is in the index already")
        leads = subscription.leads()
        room = self._room_for(subscription)
        room.postings.add(item, subscription, leads)
        room.size += 1
        self._room_of[item] = room
        self._subscriptions[item] = subscription

    def remove(self, item: T) -> None:
        """``item`` is not found any more; KeyError if it is not in here."""
        subscription = self._subscriptions.pop(item)
        room = self._room_of.pop(item)
        room.postings.remove(item, subscription)
        room.size -= 1
        if not room.size and room.narrow is not None:
            del self._rooms[room.narrow.narrow_key]

    def add_key(self, item: T, key: Key) -> None:
        """``item``'s live set has grown by what ``key`` stands for."""
        self._room_of[item].postings.add_key(item, key)

    def remove_key(self, item: T, key: Key) -> None:
        """``item``'s live set, shrunk already, has lost what ``key`` stands for; what else needs the key keeps it."""
        subscription = self._subscriptions[item]
        try:
            keys = subscription.keys()
        except Exception:  # noqa: BLE001 - a third party's filter may raise anything; a key too many costs time alone
            return
        if keys is None or key not in keys:
            self._room_of[item].postings.remove_key(item, key)

    def match(self, event: Event) -> list[T]:
        """The items whose subscriptions match, each once, in no order."""
        matched: list[T] = []
        for room in self._rooms.values():
            if self._opens(room, event):
                matched.extend(room.postings.find(event, self._asks_for))
        if self._mixed.size:
            found = self._mixed.postings.find(event, self._asks_for)
            matched.extend(item for item in found if self._admits(item, event))
        return matched

    def _room_for(self, subscription: Subscription) -> _Room[T]:
        room = self._rooms.get(subscription.narrow_key)
        if room is None:
            if len(self._rooms) >= ROOMS:
                return self._mixed
            room = self._rooms[subscription.narrow_key] = _Room(subscription)
        return room

    def _asks_for(self, item: T, event: Event) -> bool:
        try:
            return self._subscriptions[item].asks_for(event)
        except Failed as failed:
            self.failing.append((item, failed))
            return False

    def _admits(self, item: T, event: Event) -> bool:
        try:
            return self._subscriptions[item].admits(event)
        except Failed as failed:
            self.failing.append((item, failed))
            return False

    def _opens(self, room: _Room[T], event: Event) -> bool:
        """Whether the event passes what all in the room narrow by."""
        try:
            return room.narrow is not None and room.narrow.admits(event)
        except Failed as failed:
            self.failing.extend((item, failed) for item, where in self._room_of.items() if where is room)
            return False
