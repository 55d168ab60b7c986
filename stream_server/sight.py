"""Who may see what: one function, asked by every door.

REST, timelines, notifications, reposts, tags and writes ask it inside Redis' scripts, which hold :func:`table`, its
answers for every set of facts; streams ask it over the sets that they keep of their viewer. So there is one truth,
and one table in its test.
"""

from enum import IntEnum, IntFlag
from functools import cache


class Fact(IntFlag):
    """What is so between a viewer, an author and what was written, at this moment."""

    NONE = 0
    OWN = 1
    """The viewer is the author."""
    FOLLOWER = 2
    """The viewer follows the author; where the author is protected, with consent."""
    BLOCKED = 4
    """One of the two blocks the other."""
    MUTED = 8
    """The viewer does not want to hear of the author."""
    SUSPENDED = 16
    """The author is suspended."""
    PROTECTED = 32
    """The author writes for approved followers."""
    CLOSED = 64
    """It was written in a private group."""
    MEMBER = 128
    """The viewer is a member of the group in which it was written."""
    DIRECT = 256
    """It is a direct message."""
    PARTY = 512
    """The viewer is one of those among whom the message is."""


class Sight(IntEnum):
    """How much a viewer sees."""

    HIDDEN = 0
    """Not at all: it is told apart from what does not exist by nothing."""
    QUIET = 1
    """When asked for by id, or where its author's things are listed; it never comes by itself."""
    SHOWN = 2
    """Everywhere."""


WITHIN = Fact.FOLLOWER | Fact.MEMBER | Fact.PARTY
"""Each of these lets one see what a protected author wrote there."""


def sight(facts: Fact) -> Sight:
    """How much of what an author wrote a viewer sees, by the facts between them; the first rule that applies."""
    if Fact.SUSPENDED in facts:
        return Sight.HIDDEN
    if Fact.OWN in facts:
        return Sight.SHOWN
    if Fact.BLOCKED in facts or _outside(facts):
        return Sight.HIDDEN
    return Sight.QUIET if Fact.MUTED in facts else Sight.SHOWN


def _outside(facts: Fact) -> bool:
    """Whether it was not written for this viewer."""
    if Fact.DIRECT in facts and Fact.PARTY not in facts:
        return True
    if Fact.CLOSED in facts and Fact.MEMBER not in facts:
        return True
    return Fact.PROTECTED in facts and not facts & WITHIN


@cache
def table() -> str:
    """One digit of :class:`Sight` for each of the 1,024 sets of facts, by their bits: what scripts look it up in."""
    return "".join(str(int(sight(Fact(bits)))) for bits in range(2 * Fact.PARTY))
