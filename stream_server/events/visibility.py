"""Decides who may see what. The whole server uses the answers of one function.

Its answers for every set of facts are the `visibility_table`. Reads of the API look there with the facts that they have
read (`stream_server/store/reads/sight.py`), and streams with the sets of users that they keep for their viewer. The
scripts of writes have the same table.
"""

from enum import IntEnum
from functools import cache


class VisibilityFact:
    """Facts about a viewer, an author and a text, as bits. Together they decide whether the viewer sees the text.

    They are plain ints, because each sum of enum flags costs about a µs. Scripts know them by the same names.
    """

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


def decide_visibility(facts: int) -> Visibility:
    """Return where a viewer sees an author's text: a `Visibility`. ``facts`` is a sum of `VisibilityFact` bits."""
    if facts & VisibilityFact.SUSPENDED:
        return Visibility.HIDDEN
    if facts & VisibilityFact.AUTHOR:
        return Visibility.VISIBLE
    # Each of these lets a viewer read a protected author.
    admitting = VisibilityFact.FOLLOWER | VisibilityFact.GROUP_MEMBER | VisibilityFact.PARTICIPANT
    if (
        facts & VisibilityFact.BLOCKED
        or (facts & VisibilityFact.DIRECT_MESSAGE and not facts & VisibilityFact.PARTICIPANT)
        or (facts & VisibilityFact.PRIVATE_GROUP and not facts & VisibilityFact.GROUP_MEMBER)
        or (facts & VisibilityFact.PROTECTED and not facts & admitting)
    ):
        return Visibility.HIDDEN
    return Visibility.ON_REQUEST if facts & VisibilityFact.MUTED else Visibility.VISIBLE


@cache
def visibility_table() -> str:
    """Return the `Visibility` for each combination of facts, as 1,024 digits. The index is the sum of the bits."""
    return "".join(str(decide_visibility(facts).value) for facts in range(2 * VisibilityFact.PARTICIPANT))
