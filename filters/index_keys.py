"""The strings by which an event and the filters that may match it find each other.

All families share one flat space, so that finding is one intersection of sets. A term is its own key (``hello``,
``#tag``); the others begin with a character that is white space to :meth:`str.split` and so begins no term.
Those that only rules go by begin with :data:`RULE_KEY_PREFIX`: an event makes them when somebody needs one.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

Key: TypeAlias = str
"""A term as :attr:`filters.event.Event.terms` has it, or one made by the functions of this package."""

Clause: TypeAlias = frozenset[Key]
"""Keys that an event must all have."""


class IndexTerms(NamedTuple):
    """How events find a filter: what has all keys of one of ``exact`` matches, and needs no asking.

    What lies in one of ``boxes`` (west, south, east, north in degrees, as ``locations`` counts it) matches too. What
    matches without any of that has all keys of one of ``candidates``. ``dynamic`` says that the hints, of one key each, change
    with a set that somebody goes on changing.
    """

    exact: Collection[Clause]
    candidates: Collection[Clause] = ()
    dynamic: bool = False
    boxes: Collection[tuple[float, float, float, float]] = ()


RULE_KEY_PREFIX = "\x1e"
"""How the keys begin that are not among :attr:`filters.event.Event.common_keys`."""

_RARE_PREFIXES = ("#", "@", "$", "\x1fp", f"{RULE_KEY_PREFIX}l", f"{RULE_KEY_PREFIX}c")
"""How keys begin that name one thing or person."""

_COMMON_PREFIXES = (f"{RULE_KEY_PREFIX}f", f"{RULE_KEY_PREFIX}g", f"{RULE_KEY_PREFIX}y", f"{RULE_KEY_PREFIX}m!")
"""How keys begin that a large share of all events has."""


def user_key(user_id: str) -> Key:
    """The key of events that concern this user, as ``follow`` counts it."""
    return f"\x1fp{user_id}"


def login_key(name: str) -> Key:
    """The key of statuses by, in answer to, or repeated from the user with this folded login."""
    return f"{RULE_KEY_PREFIX}l{name}"


def conversation_key(status_id: str) -> Key:
    """The key of the statuses of a thread, by the one that began it."""
    return f"{RULE_KEY_PREFIX}c{status_id}"


def place_key(name: str) -> Key:
    """The key of statuses from a place, by its folded name."""
    return f"{RULE_KEY_PREFIX}n{name}"


def country_key(code: str) -> Key:
    """The key of statuses from a country, by its lower-case code."""
    return f"{RULE_KEY_PREFIX}y{code}"


def language_key(tag: str) -> Key:
    """The key of events in a language, by its lower-case tag."""
    return f"{RULE_KEY_PREFIX}g{tag}"


def language_keys(tag: str | None) -> Iterator[Key]:
    """The keys of an event with this BCP 47 tag: ``en-GB`` is found by ``en`` too, None by ``und``."""
    found = (tag or "und").lower()
    while found:
        yield language_key(found)
        found = found.rpartition("-")[0]


def flag_key(name: str) -> Key:
    """The key of statuses of which this can be said, such as ``is:reply`` or ``has:media``."""
    return f"{RULE_KEY_PREFIX}f{name}"


def bio_key(word: str) -> Key:
    """The key of statuses whose author says this folded word of themselves."""
    return f"{RULE_KEY_PREFIX}b{word}"


def quoted_key(term: str) -> Key:
    """The key of quotes whose original has this term."""
    return f"{RULE_KEY_PREFIX}q{term}"


def estimate_rarity(key: Key) -> tuple[bool, int, str]:
    """Sorts keys by how rare they probably are, which is said without statistics; no two are equal.

    Names are rarer than words, long words rarer than short ones, and what is said of many events comes last; a poor
    guess costs time, never a match.
    """
    return key.startswith(_RARE_PREFIXES), 0 if key.startswith(_COMMON_PREFIXES) else len(key), key


def rarest_key(clause: Iterable[Key]) -> Key:
    """The key of a clause to look for first."""
    return max(clause, key=estimate_rarity)
