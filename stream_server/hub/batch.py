"""One joined write on its way to the members of a group, in slices short enough for everybody else."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from stream_server.events.position import Position

if TYPE_CHECKING:
    from stream_server.hub.client import Client
    from stream_server.hub.group import ClientGroup

logger = logging.getLogger(__name__)


class Recipient(NamedTuple):
    """A member's place in a group, with its two methods at hand: they run once per client and flush."""

    write: Callable[[bytes], None]
    buffered_bytes: Callable[[], float]
    client: "Client"


class WriteLimits(NamedTuple):
    """How many unsent bytes one member may have: ``max_bytes`` of them, of which ``warning_bytes`` are nothing to speak of.

    ``on_slow`` is told of who has more than is easy, with where it stands and how many; ``on_overflow`` of who has no room for
    a batch, or no socket any more, with where the batch begins.
    """

    warning_bytes: int
    max_bytes: int
    on_slow: Callable[["Client", Position, float], None]
    on_overflow: Callable[["Client", Position], None]


class Batch:
    """The same bytes for all who were members when it was taken.

    ``resume_position`` is the position before its first frame, ``event_count`` counts those frames that are one, ``served_count`` who got
    them; batches of one ``wave_number`` may leave in one turn of the loop. A member that left meanwhile is passed over, and so
    is one that left and came back: it caught up past these frames by itself. While nobody came or went (``version``)
    nobody need be asked.
    """

    __slots__ = (
        "_data", "_frames", "_next_index", "_recipients", "_version", "event_count", "frame_count", "group", "resume_position", "served_count", "wave_number",
    )  # fmt: skip

    def __init__(
        self,
        group: "ClientGroup",
        frames: list[bytes],
        data: bytes | None,
        resume_position: Position,
        recipients: tuple[Recipient, ...],
    ) -> None:
        self.group = group
        self.resume_position = resume_position
        self.frame_count = self.event_count = len(frames)
        self.served_count = 0
        self.wave_number = 0
        self._frames = frames
        self._data = data
        self._recipients = recipients
        self._next_index = 0
        self._version = group.membership_version

    @property
    def remaining_count(self) -> int:
        """How many are still to be served."""
        return len(self._recipients) - self._next_index

    def write_slice(self, limits: WriteLimits, max_writes: int) -> None:
        """Write to the next ``max_writes`` of those who have room for it.

        Who has nothing unsent has room for a single frame, however large it is: there is no other way for it.
        """
        seats = self._recipients[self._next_index : self._next_index + max_writes]
        self._next_index += len(seats)
        if self.group.membership_version != self._version:
            seats = self._still_members(seats)
        try:
            data = self._data or self._join()
        except Exception:  # whom it would cost these frames reads them by itself
            for seat in seats:
                limits.on_overflow(seat.client, self.resume_position)
            raise
        fits = limits.max_bytes - len(data)
        if self.frame_count == 1:
            fits = max(fits, 0)
        easy = min(fits, limits.warning_bytes)
        refused = 0
        for write, backlog, member in seats:
            try:
                unsent = backlog()
                if unsent <= easy:
                    write(data)
                    continue
                if unsent <= fits:
                    limits.on_slow(member, self.resume_position, unsent)
                    write(data)
                    continue
            except RuntimeError:
                pass  # a transport that is closed already: it must not cost those who come after it their frames
            except Exception:
                logger.exception("a client could not be written to")  # nor must what nobody foresaw
            limits.on_overflow(member, self.resume_position)
            refused += 1
        self.served_count += len(seats) - refused

    def _join(self) -> bytes:
        """Not before it is its turn: what waits behind others is shared frames, and no copy of them."""
        self._data = self.group.framing.wrap(b"".join(self._frames))
        return self._data

    def _still_members(self, recipients: tuple[Recipient, ...]) -> tuple[Recipient, ...]:
        group, since_n = self.group, self.resume_position.n
        return tuple(
            seat for seat in recipients if seat.client.group is group and seat.client.joined_at_number <= since_n
        )
