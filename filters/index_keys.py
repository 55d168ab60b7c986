"""Index keys: the strings by which the index connects an event with the filters that may match it.

All kinds of keys share one flat namespace, so one set intersection finds the filters. A term is its own key
(``hello``, ``#tag``). Every other key begins with a character that :meth:`str.split` treats as white space, so it
cannot be equal to a term. Keys that only rules use begin with :data:`RULE_KEY_PREFIX`. An event computes these only if
some filter needs them.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from filters.language_codes import MACRO_LANGUAGES, WHOLE_LANGUAGES, present_tag

Key: TypeAlias = str
"""A term from :attr:`filters.event.Event.terms`, or a string made by this module or by ``grid``."""
Clause: TypeAlias = frozenset[Key]
"""A set of keys. An event satisfies the clause if it has all of them."""


class IndexTerms(NamedTuple):
    """The terms by which the index finds a filter: a matching event has all keys of a clause, or touches a box.

    Attributes:
        exact: Clauses (sets of keys) that prove a match. If an event has all keys of one of them, it matches.
        candidates: Clauses that do not prove a match. If an event has all keys of one, the server calls ``matches``.
        dynamic_keys: Keys to which the server later adds and from which it removes some, as users are followed. If an
            event has one of them, the server calls ``matches``. None if the keys never change.
        boxes: West, south, east, north in degrees. An event matches if its point is in a box or its place overlaps one.
    """

    exact: Collection[Clause]
    candidates: Collection[Clause] = ()
    dynamic_keys: Collection[Key] | None = None
    boxes: Collection[tuple[float, float, float, float]] = ()


UNDETERMINED = "und"  # the BCP 47 tag of an unknown language, also of events without text

MAX_CACHED_TAGS = 1024  # number of language tags whose keys are kept

_ANY_PART = "!"  # behind a macro-language, in the key of a text that may be in any language that is part of it

RULE_KEY_PREFIX = "\x1e"  # of the keys that are not among :attr:`filters.event.Event.common_keys`

LOGIN = f"{RULE_KEY_PREFIX}l"  # + a folded login: of the author, the replied-to user or the reposted author
CONVERSATION = f"{RULE_KEY_PREFIX}c"  # + the id of the first status of a thread
PLACE = f"{RULE_KEY_PREFIX}n"  # + the folded name of a place
COUNTRY = f"{RULE_KEY_PREFIX}y"  # + a lower-case ISO 3166-1 code
LANGUAGE = f"{RULE_KEY_PREFIX}g"  # + a lower-case language tag
FLAG = f"{RULE_KEY_PREFIX}f"  # + a property of a status, such as ``is:reply`` or ``has:media``
BIO = f"{RULE_KEY_PREFIX}b"  # + a folded word of the author's bio
QUOTED = f"{RULE_KEY_PREFIX}q"  # + a term of the text that a status quotes

_RARE_PREFIXES = ("#", "@", "$", "\x1fp", LOGIN, CONVERSATION)  # of keys for one topic, person or conversation
_COMMON_PREFIXES = (FLAG, LANGUAGE, COUNTRY, f"{RULE_KEY_PREFIX}m!")  # of keys that a large share of all events has


def user_key(user_id: str) -> Key:
    """Return the index key of a user. Each event that the parameter ``follow`` finds for this user has the key."""
    return f"\x1fp{user_id}"


@lru_cache(MAX_CACHED_TAGS)
def language_keys(tag: str | None) -> frozenset[Key]:
    """Return the index keys of a text in this language: ``en-gb`` and ``en`` for ``en-GB``, and ``und`` for None.

    Renamed languages have the key of their present code. A language that is part of a macro-language has the keys of
    both, ``nb`` and ``no``. A text that only says the macro-language may be in any part of it. It has a key for that.
    """
    present = present_tag(tag or UNDETERMINED)
    code, hyphen, rest = present.partition("-")
    found = list(_shortened(present))
    if code in MACRO_LANGUAGES:
        found += _shortened(f"{MACRO_LANGUAGES[code]}{hyphen}{rest}")
    if code in WHOLE_LANGUAGES:
        found += [f"{each}{_ANY_PART}" for each in found]
    return frozenset(map(LANGUAGE.__add__, found))


def wanted_language_keys(tag: str) -> frozenset[Key]:
    """Return index keys: a text is in the language that a filter names if it has one of them."""
    present = present_tag(tag)
    code, hyphen, rest = present.partition("-")
    whole = MACRO_LANGUAGES.get(code)
    found = [present] if whole is None else [present, f"{whole}{hyphen}{rest}{_ANY_PART}"]
    return frozenset(map(LANGUAGE.__add__, found))


def _shortened(tag: str) -> Iterator[str]:
    """Return a language tag, and what remains of it without its last parts (RFC 4647 section 3.3.1)."""
    while tag:
        yield tag
        tag = tag.rpartition("-")[0]


def estimate_rarity(key: Key) -> tuple[bool, int, str]:
    """Return a sort key that sorts probably rare index keys last. Different index keys never compare equal.

    Keys of a topic, person or conversation count as rarer than words, and long words as rarer than short ones. Keys
    such as a language or a country count as the most common. A wrong guess costs time, but never a match.
    """
    return key.startswith(_RARE_PREFIXES), 0 if key.startswith(_COMMON_PREFIXES) else len(key), key


def rarest_key(clause: Iterable[Key]) -> Key:
    """Return the rarest index key of the clause: the key that probably the fewest events have."""
    return max(clause, key=estimate_rarity)
