"""Decides who may see what. The whole server uses the answers of one function.

Its answers for every set of facts are the `visibility_table`. Reads of the API look there with the facts that they have
read (`stream_server/store/reads/sight.py`), and streams with the sets of users that they keep for their viewer. The
scripts of writes have the same table.
"""

from enum import IntEnum, IntFlag
from functools import cache


class VisibilityFact(IntFlag):
    """Facts about a viewer, an author and a text. Together they decide whether the viewer sees the text."""

    NONE = 0
    AUTHOR = 1
    """The viewer is the author."""
    FOLLOWER = 2
    """The viewer follows the author; a protected author has approved this."""
    BLOCKED = 4
    """The viewer blocks the author, or the author blocks the viewer."""
    MUTED = 8
    """The viewer mutes the author."""
    SUSPENDED = 16
    """The author is suspended."""
    PROTECTED = 32
    """Only approved followers may read the author."""
    PRIVATE_GROUP = 64
    """It was written in a private group."""
    GROUP_MEMBER = 128
    """The viewer is a member of the group in which it was written."""
    DIRECT_MESSAGE = 256
    """It is a direct message."""
    PARTICIPANT = 512
    """The viewer is the sender or a receiver of the direct message."""


class Visibility(IntEnum):
    """The extent to which a viewer sees a text: not at all, only on request for its id or its author, or everywhere."""

    HIDDEN = 0
    """Nowhere. For the viewer it looks as if it did not exist."""
    ON_REQUEST = 1
    """Only when requested by its id or in the lists of its author; never in a stream or timeline."""
    VISIBLE = 2
    """Everywhere."""


def decide_visibility(facts: VisibilityFact) -> Visibility:
    """Return where a viewer sees an author's text: a `Visibility`. ``facts`` are the two users' blocks, follows etc."""
    if VisibilityFact.SUSPENDED in facts:
        return Visibility.HIDDEN
    if VisibilityFact.AUTHOR in facts:
        return Visibility.VISIBLE
    if VisibilityFact.BLOCKED in facts or _is_excluded(facts):
        return Visibility.HIDDEN
    return Visibility.ON_REQUEST if VisibilityFact.MUTED in facts else Visibility.VISIBLE


def _is_excluded(facts: VisibilityFact) -> bool:
    if VisibilityFact.DIRECT_MESSAGE in facts and VisibilityFact.PARTICIPANT not in facts:
        return True
    if VisibilityFact.PRIVATE_GROUP in facts and VisibilityFact.GROUP_MEMBER not in facts:
        return True
    # Each of these facts lets a viewer read a protected author.
    admitting = VisibilityFact.FOLLOWER | VisibilityFact.GROUP_MEMBER | VisibilityFact.PARTICIPANT
    return VisibilityFact.PROTECTED in facts and not facts & admitting


@cache
def visibility_table() -> str:
    """Return the `Visibility` for each combination of facts, as 1,024 digits. The index is ``int(facts)``."""
    return "".join(str(int(decide_visibility(VisibilityFact(bits)))) for bits in range(2 * VisibilityFact.PARTICIPANT))
