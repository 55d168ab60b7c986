"""Sets of items that use little memory when they are small."""

from collections.abc import Hashable
from typing import TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

MAX_TUPLE_ITEMS = 8
"""Maximum size at which the items are stored as a tuple, which takes a quarter of the memory of a set."""

CompactSet: TypeAlias = tuple[T, ...] | set[T]


def with_item(items: CompactSet[T], item: T) -> CompactSet[T]:
    """Return the items with ``item`` added. If ``items`` is a set, it is changed in place and returned."""
    if isinstance(items, set):
        items.add(item)
        return items
    if item in items:
        return items
    return (*items, item) if len(items) < MAX_TUPLE_ITEMS else {*items, item}


def without_item(items: CompactSet[T], item: T) -> CompactSet[T]:
    """Return the items with ``item`` removed. A set is changed in place, and returned as a tuple once it is small."""
    if isinstance(items, set):
        items.discard(item)
        return items if len(items) > MAX_TUPLE_ITEMS else tuple(items)
    return tuple([other for other in items if other != item])
