"""Who may see what: one function, asked by every door.

REST, timelines, notifications, reposts, tags and writes ask it inside Redis' scripts, which hold :func:`visibility_table`, its
answers for every set of facts; streams ask it over the sets that they keep of their viewer. So there is one truth,
and one table in its test.
"""

from enum import IntEnum, IntFlag
from functools import cache


class VisibilityFact(IntFlag):
    """What is so between a viewer, an author and what was written, at this moment."""

    NONE = 0
    AUTHOR = 1
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
    PRIVATE_GROUP = 64
    """It was written in a private group."""
    GROUP_MEMBER = 128
    """The viewer is a member of the group in which it was written."""
    DIRECT_MESSAGE = 256
    """It is a direct message."""
    PARTICIPANT = 512
    """The viewer is one of those among whom the message is."""


class Visibility(IntEnum):
    """How much a viewer sees."""

    HIDDEN = 0
    """Not at all: it is told apart from what does not exist by nothing."""
    ON_REQUEST = 1
    """When asked for by id, or where its author's things are listed; it never comes by itself."""
    VISIBLE = 2
    """Everywhere."""


ADMITTING_FACTS = VisibilityFact.FOLLOWER | VisibilityFact.GROUP_MEMBER | VisibilityFact.PARTICIPANT
"""Each of these lets one see what a protected author wrote there."""


def decide_visibility(facts: VisibilityFact) -> Visibility:
    """How much of what an author wrote a viewer sees, by the facts between them; the first rule that applies."""
    if VisibilityFact.SUSPENDED in facts:
        return Visibility.HIDDEN
    if VisibilityFact.AUTHOR in facts:
        return Visibility.VISIBLE
    if VisibilityFact.BLOCKED in facts or _is_excluded(facts):
        return Visibility.HIDDEN
    return Visibility.ON_REQUEST if VisibilityFact.MUTED in facts else Visibility.VISIBLE


def _is_excluded(facts: VisibilityFact) -> bool:
    """Whether it was not written for this viewer."""
    if VisibilityFact.DIRECT_MESSAGE in facts and VisibilityFact.PARTICIPANT not in facts:
        return True
    if VisibilityFact.PRIVATE_GROUP in facts and VisibilityFact.GROUP_MEMBER not in facts:
        return True
    return VisibilityFact.PROTECTED in facts and not facts & ADMITTING_FACTS


@cache
def visibility_table() -> str:
    """One digit of :class:`Visibility` for each of the 1,024 sets of facts, by their bits: what scripts look it up in."""
    return "".join(str(int(decide_visibility(VisibilityFact(bits)))) for bits in range(2 * VisibilityFact.PARTICIPANT))
