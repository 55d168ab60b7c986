"""One joined write on its way to the members of a group, in slices short enough for everybody else."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from stream_server.events import Position

if TYPE_CHECKING:
    from stream_server.hub.group import Group
    from stream_server.hub.member import Member

logger = logging.getLogger(__name__)


class Seat(NamedTuple):
    """A member's place in a group, with its two methods at hand: they run once per client and flush."""

    write: Callable[[bytes], None]
    backlog: Callable[[], float]
    member: "Member"


class Room(NamedTuple):
    """How many unsent bytes one member may have: ``most`` of them, of which ``easy`` are nothing to speak of.

    ``warn`` is told of who has more than is easy, with where it stands and how many; ``refuse`` of who has no room for
    a batch, or no socket any more, with where the batch begins.
    """

    easy: int
    most: int
    warn: Callable[["Member", Position, float], None]
    refuse: Callable[["Member", Position], None]


class Batch:
    """The same bytes for all who were members when it was taken.

    ``since`` is the position before its first frame, ``events`` counts those frames that are one, ``served`` who got
    them; batches of one ``wave`` may leave in one turn of the loop. A member that left meanwhile is passed over, and so
    is one that left and came back: it caught up past these frames by itself. While nobody came or went (``version``)
    nobody need be asked.
    """

    __slots__ = (
        "_data", "_frames", "_next", "_seats", "_version", "events", "frames", "group", "served", "since", "wave",
    )  # fmt: skip

    def __init__(
        self, group: "Group", frames: list[bytes], data: bytes | None, since: Position, seats: tuple[Seat, ...]
    ) -> None:
        self.group = group
        self.since = since
        self.frames = self.events = len(frames)
        self.served = 0
        self.wave = 0
        self._frames = frames
        self._data = data
        self._seats = seats
        self._next = 0
        self._version = group.version

    @property
    def left(self) -> int:
        """How many are still to be served."""
        return len(self._seats) - self._next

    def write(self, room: Room, most: int) -> None:
        """Write to the next ``most`` of those who have room for it.

        Who has nothing unsent has room for a single frame, however large it is: there is no other way for it.
        """
        seats = self._seats[self._next : self._next + most]
        self._next += len(seats)
        if self.group.version != self._version:
            seats = self._present(seats)
        try:
            data = self._data or self._join()
        except Exception:  # whom it would cost these frames reads them by itself
            for seat in seats:
                room.refuse(seat.member, self.since)
            raise
        fits = room.most - len(data)
        if self.frames == 1:
            fits = max(fits, 0)
        easy = min(fits, room.easy)
        refused = 0
        for write, backlog, member in seats:
            try:
                unsent = backlog()
                if unsent <= easy:
                    write(data)
                    continue
                if unsent <= fits:
                    room.warn(member, self.since, unsent)
                    write(data)
                    continue
            except RuntimeError:
                pass  # a transport that is closed already: it must not cost those who come after it their frames
            except Exception:
                logger.exception("a client could not be written to")  # nor must what nobody foresaw
            room.refuse(member, self.since)
            refused += 1
        self.served += len(seats) - refused

    def _join(self) -> bytes:
        """Not before it is its turn: what waits behind others is shared frames, and no copy of them."""
        self._data = self.group.framing.wrap(b"".join(self._frames))
        return self._data

    def _present(self, seats: tuple[Seat, ...]) -> tuple[Seat, ...]:
        group, since_n = self.group, self.since.n
        return tuple(seat for seat in seats if seat.member.group is group and seat.member.joined_n <= since_n)
