"""The strings by which an event and the filters that may match it find each other.

All families share one flat space, so that finding is one intersection of sets. A term is its own key (``hello``,
``#tag``); the others begin with a character that is white space to :meth:`str.split` and so begins no term.
"""

from collections.abc import Iterable
from typing import TypeAlias

Key: TypeAlias = str
"""A term as :attr:`filters.event.Event.terms` has it, or one made by the functions of this package."""

Clause: TypeAlias = frozenset[Key]
"""Keys that an event must all have."""

_ENTITY_SIGNS = ("#", "@", "$")


def person(user_id: str) -> Key:
    """The key of events that concern this user, as ``follow`` counts it."""
    return f"\x1fp{user_id}"


def rarity(key: Key) -> tuple[bool, int, str]:
    """Sorts keys by how rare they probably are, which is said without statistics; no two are equal.

    Entities are rarer than words, long words rarer than short ones; a poor guess costs time, never a match.
    """
    return key.startswith(_ENTITY_SIGNS), len(key), key


def rarest(clause: Iterable[Key]) -> Key:
    """The key of a clause to look for first."""
    return max(clause, key=rarity)
