"""One joined write on its way to the members of a group, in slices short enough for everybody else."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from stream_server.events import Position

if TYPE_CHECKING:
    from stream_server.hub.group import Group
    from stream_server.hub.member import Member


class Seat(NamedTuple):
    """A member's place in a group, with its two methods at hand: they run once per client and flush."""

    write: Callable[[bytes], None]
    backlog: Callable[[], float]
    member: "Member"


class Batch:
    """The same bytes for all who were members when it was taken.

    ``since`` is the position before its first frame, ``served`` counts who got it. A member that left meanwhile is
    passed over, and so is one that left and came back: it caught up past these frames by itself. While nobody came
    or went (``version``) nobody need be asked.
    """

    __slots__ = ("_next", "_seats", "_version", "data", "frames", "group", "served", "since")

    def __init__(self, group: "Group", data: bytes, since: Position, frames: int, seats: tuple[Seat, ...]) -> None:
        self.group = group
        self.data = data
        self.since = since
        self.frames = frames
        self.served = 0
        self._seats = seats
        self._next = 0
        self._version = group.version

    @property
    def left(self) -> int:
        """How many are still to be served."""
        return len(self._seats) - self._next

    def write(self, limit: int, refuse: Callable[["Member", Position], None], most: int) -> None:
        """Write to the next ``most``; ``refuse`` is told of who has more than ``limit`` unsent bytes, or no socket."""
        seats = self._seats[self._next : self._next + most]
        self._next += len(seats)
        if self.group.version != self._version:
            seats = self._present(seats)
        data = self.data
        refused = 0
        for write, backlog, member in seats:
            try:
                if backlog() <= limit:
                    write(data)
                    continue
            except RuntimeError:
                pass  # a transport that is closed already: it must not cost those who come after it their frames
            refuse(member, self.since)
            refused += 1
        self.served += len(seats) - refused

    def _present(self, seats: tuple[Seat, ...]) -> tuple[Seat, ...]:
        group, since_n = self.group, self.since.n
        return tuple(seat for seat in seats if seat.member.group is group and seat.member.joined_n <= since_n)
