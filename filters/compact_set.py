"""The items on one of very many lists."""

from collections.abc import Hashable
from typing import TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

MAX_TUPLE_ITEMS = 8
"""So many items are a tuple, which takes a quarter of the memory of a set; more are a set."""

CompactSet: TypeAlias = tuple[T, ...] | set[T]


def with_item(items: CompactSet[T], item: T) -> CompactSet[T]:
    """The same with ``item``; a set is changed and given back."""
    if isinstance(items, set):
        items.add(item)
        return items
    if item in items:
        return items
    return (*items, item) if len(items) < MAX_TUPLE_ITEMS else {*items, item}


def without_item(items: CompactSet[T], item: T) -> CompactSet[T]:
    """The same without ``item``; a set is changed, and given back as a tuple when few are left."""
    if isinstance(items, set):
        items.discard(item)
        return items if len(items) > MAX_TUPLE_ITEMS else tuple(items)
    return tuple([one for one in items if one != item])
