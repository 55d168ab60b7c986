"""One joined write on its way to the members of a group, in slices short enough for everybody else."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from stream_server.events import Position

if TYPE_CHECKING:
    from stream_server.hub.group import Group
    from stream_server.hub.member import Member

CLOCK_EVERY = 32
"""Members between two looks at the clock: about 0.1 ms of writing."""


class Batch:
    """The same bytes for all who were members when it was taken.

    ``since`` is the position before its first frame. A member that left is passed over, and so is one
    that left and came back meanwhile: it caught up past these frames by itself.
    """

    __slots__ = ("data", "frames", "group", "members", "served", "since")

    def __init__(
        self, group: "Group", data: bytes, since: Position, frames: int, members: Iterator["Member"]
    ) -> None:
        self.group = group
        self.data = data
        self.since = since
        self.frames = frames
        self.members = members
        self.served = 0

    def write(self, limit: int, refuse: Callable[["Member", Position], None], expired: Callable[[], bool]) -> bool:
        """Write to the next members; False when ``expired`` ended the slice before all were served.

        A member with more than ``limit`` unsent bytes gets nothing and is handed to ``refuse``.
        """
        group, data, since_n = self.group, self.data, self.since.n
        for count, member in enumerate(self.members, 1):
            if member.group is group and member.joined_n <= since_n:
                if member.backlog() > limit:
                    refuse(member, self.since)
                else:
                    member.write(data)
                    self.served += 1
            if count % CLOCK_EVERY == 0 and expired():
                return False
        return True
