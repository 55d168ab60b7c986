"""The open streams added up by user, for an operator who asks who is the largest."""

from collections.abc import Iterable
from heapq import nlargest
from operator import attrgetter
from typing import Literal

import msgspec

SumOrder = Literal["streams", "behind", "buffer", "delivered"]
"""What sums are ordered by, the largest first."""

MAX_SUMS = 1000
"""Users whom one process tells of: the largest of its own. Of a user who is smaller in each, a part may be missing."""


class UserSum(msgspec.Struct):
    """The open streams of one user, or of one reader token, together.

    Attributes:
        uid: The id of the user; empty for a reader token.
        reader: The ``jti`` of the reader token; empty for a user.
        streams: Number of the streams.
        delivered: Events written to them.
        behind: Entries of the log by which the slowest of them is behind.
        buffer: Bytes that their clients have not taken.
    """

    uid: str
    reader: str
    streams: int = 0
    delivered: int = 0
    behind: int = 0
    buffer: int = 0

    def add(self, other: "UserSum") -> None:
        """Add what another process, or another stream, says of the same user."""
        self.streams += other.streams
        self.delivered += other.delivered
        self.behind = max(self.behind, other.behind)
        self.buffer += other.buffer


class SumTable:
    """Sums by user, to which rows are added."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], UserSum] = {}

    def add(self, rows: Iterable[UserSum]) -> None:
        """Add rows, of which several may be of one user."""
        for row in rows:
            found = self._sums.get((row.uid, row.reader))
            if found is None:
                self._sums[row.uid, row.reader] = row
            else:
                found.add(row)

    def largest(self, order: str, count: int) -> list[UserSum]:
        """Return at most ``count`` sums, the largest by ``order`` first. Equal ones are in the order of their ids."""
        return nlargest(count, self._sums.values(), key=attrgetter(order, "uid", "reader"))
