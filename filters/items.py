"""The items on one of very many lists."""

from collections.abc import Hashable
from typing import TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

FEW = 8
"""So many items are a tuple, which takes a quarter of the memory of a set; more are a set."""

Items: TypeAlias = tuple[T, ...] | set[T]


def added(items: Items[T], item: T) -> Items[T]:
    """The same with ``item``; a set is changed and given back."""
    if isinstance(items, set):
        items.add(item)
        return items
    if item in items:
        return items
    return (*items, item) if len(items) < FEW else {*items, item}


def removed(items: Items[T], item: T) -> Items[T]:
    """The same without ``item``; a set is changed, and given back as a tuple when few are left."""
    if isinstance(items, set):
        items.discard(item)
        return items if len(items) > FEW else tuple(items)
    return tuple([one for one in items if one != item])
