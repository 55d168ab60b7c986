"""Index keys: the strings by which the index connects an event with the filters that may match it.

All kinds of keys share one flat namespace, so one set intersection finds the filters. A term is its own key
(``hello``, ``#tag``). Every other key begins with a character that :meth:`str.split` treats as white space, so it
cannot be equal to a term. Keys that only rules use begin with :data:`RULE_KEY_PREFIX`. An event computes these only if
some filter needs them.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

Key: TypeAlias = str
"""A term from :attr:`filters.event.Event.terms`, or a string made by a function of this module or of ``grid``."""

Clause: TypeAlias = frozenset[Key]
"""A set of keys. An event satisfies the clause if it has all of them."""


class IndexTerms(NamedTuple):
    """How the index finds a filter.

    Every event that matches the filter must satisfy one of ``exact``, ``boxes`` and ``candidates``.

    Attributes:
        exact: An event that satisfies one of these clauses matches. The server does not call ``matches``.
        candidates: An event that satisfies one of these clauses may match. The server calls ``matches``.
        dynamic: Whether the candidates change later, because they come from a set that changes, such as the followed
            users. Then each candidate has exactly one key.
        boxes: West, south, east, north in degrees. An event that ``locations`` with this box would find, matches.
    """

    exact: Collection[Clause]
    candidates: Collection[Clause] = ()
    dynamic: bool = False
    boxes: Collection[tuple[float, float, float, float]] = ()


RULE_KEY_PREFIX = "\x1e"
"""Prefix of the keys that are not among :attr:`filters.event.Event.common_keys`."""

_RARE_PREFIXES = ("#", "@", "$", "\x1fp", f"{RULE_KEY_PREFIX}l", f"{RULE_KEY_PREFIX}c")
"""Prefixes of keys that name one topic, person or conversation."""

_COMMON_PREFIXES = (f"{RULE_KEY_PREFIX}f", f"{RULE_KEY_PREFIX}g", f"{RULE_KEY_PREFIX}y", f"{RULE_KEY_PREFIX}m!")
"""Prefixes of keys that a large share of all events has."""


def user_key(user_id: str) -> Key:
    """Return the key of events that concern this user, in the sense of the parameter ``follow``."""
    return f"\x1fp{user_id}"


def login_key(name: str) -> Key:
    """Return the key of statuses whose author, replied-to user or reposted author has this folded login."""
    return f"{RULE_KEY_PREFIX}l{name}"


def conversation_key(status_id: str) -> Key:
    """Return the key of the statuses in a thread. ``status_id`` is the first status of the thread."""
    return f"{RULE_KEY_PREFIX}c{status_id}"


def place_key(name: str) -> Key:
    """Return the key of statuses from a place, by its folded name."""
    return f"{RULE_KEY_PREFIX}n{name}"


def country_key(code: str) -> Key:
    """Return the key of statuses from a country, by its lower-case ISO 3166-1 code."""
    return f"{RULE_KEY_PREFIX}y{code}"


def language_key(tag: str) -> Key:
    """Return the key of events in a language, by its lower-case tag."""
    return f"{RULE_KEY_PREFIX}g{tag}"


def language_keys(tag: str | None) -> Iterator[Key]:
    """Return the keys of an event with this BCP 47 tag.

    ``en-GB`` gives the keys of ``en-gb`` and ``en``, and None gives the key of ``und``.
    """
    found = (tag or "und").lower()
    while found:
        yield language_key(found)
        found = found.rpartition("-")[0]


def flag_key(name: str) -> Key:
    """Return the key of statuses with this property, such as ``is:reply`` or ``has:media``."""
    return f"{RULE_KEY_PREFIX}f{name}"


def bio_key(word: str) -> Key:
    """Return the key of statuses whose author's bio has this folded word."""
    return f"{RULE_KEY_PREFIX}b{word}"


def quoted_key(term: str) -> Key:
    """Return the key of statuses that quote a text with this term."""
    return f"{RULE_KEY_PREFIX}q{term}"


def estimate_rarity(key: Key) -> tuple[bool, int, str]:
    """Return a sort key that puts probably rarer index keys last. Two different index keys never compare equal.

    The guess uses no statistics. Names count as rarer than words, long words as rarer than short ones, and properties
    of many events as the most common. A wrong guess costs time, but never a match.
    """
    return key.startswith(_RARE_PREFIXES), 0 if key.startswith(_COMMON_PREFIXES) else len(key), key


def rarest_key(clause: Iterable[Key]) -> Key:
    """Return the probably rarest key of a clause."""
    return max(clause, key=estimate_rarity)
