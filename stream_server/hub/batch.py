"""One joined write to the clients of a group, written in slices so that other tasks get their turn."""

import logging
from collections.abc import Callable
from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.hub.client import Client
from stream_server.hub.framing import WrapBytes
from stream_server.hub.membership import Memberships, Recipient

logger = logging.getLogger(__name__)


class WriteLimits(NamedTuple):
    """How many unsent bytes one live client may have, and what to call when it has more.

    Attributes:
        warning_bytes: Up to this many unsent bytes, a client is written to without further checks.
        max_bytes: Limit of unsent bytes, including the batch that is about to be written.
        on_slow: Called with client, resume position and unsent bytes when a client has more than `warning_bytes`.
        on_overflow: Called with client and resume position when a client has no room for a batch, or its transport is
            closed. The resume position is the position before the first frame of the batch.
    """

    warning_bytes: int
    max_bytes: int
    on_slow: Callable[[Client, Position, float], None]
    on_overflow: Callable[[Client, Position], None]


class Batch:
    """The same bytes for all clients that were in the group when the batch was taken.

    A client that left since then is skipped. So is a client that left and joined again, because it has caught up past
    these frames by itself. While nobody joined or left, no client has to be checked (see `Memberships.version`).

    Attributes:
        memberships: The memberships of the group from which the batch was taken.
        resume_position: Position before the first frame. A client that cannot take the batch catches up from here.
        frame_count: Number of frames.
        event_count: Number of frames that are events, so without control messages.
        served_count: Number of clients that the batch was written to so far.
        wave_number: Number of the wave to which the batch belongs. The flusher writes one wave in a turn of the loop.
    """

    __slots__ = (
        "_data", "_frames", "_next_index", "_recipients", "_version", "_wrap", "event_count", "frame_count",
        "memberships", "resume_position", "served_count", "wave_number",
    )  # fmt: skip

    def __init__(
        self,
        memberships: Memberships,
        wrap: WrapBytes,
        frames: list[bytes],
        data: bytes | None,
        resume_position: Position,
    ) -> None:
        self.memberships = memberships
        self.resume_position = resume_position
        self.frame_count = self.event_count = len(frames)
        self.served_count = 0
        self.wave_number = 0
        self._frames = frames
        self._wrap = wrap
        self._data = data
        self._recipients = memberships.snapshot()
        self._next_index = 0
        self._version = memberships.version

    @property
    def remaining_count(self) -> int:
        """Number of clients that are still to be written to."""
        return len(self._recipients) - self._next_index

    def write_slice(self, limits: WriteLimits, max_writes: int) -> None:
        """Write to the next ``max_writes`` clients.

        A client without room is passed to ``limits.on_overflow``. A client with nothing unsent always has room for a
        batch of one frame, however large: such a frame could not be sent in any other way.
        """
        recipients = self._recipients[self._next_index : self._next_index + max_writes]
        self._next_index += len(recipients)
        if self.memberships.version != self._version:
            recipients = self.memberships.still_current(recipients)
        try:
            data = self._data or self._join()
        except Exception:  # the frames are lost for these clients here, so let them catch up instead
            for recipient in recipients:
                limits.on_overflow(recipient.client, self.resume_position)
            raise
        max_unsent = limits.max_bytes - len(data)
        if self.frame_count == 1:
            max_unsent = max(max_unsent, 0)
        self._write_to(recipients, data, min(max_unsent, limits.warning_bytes), max_unsent, limits)

    def _write_to(
        self, recipients: tuple[Recipient, ...], data: bytes, warning: float, max_unsent: float, limits: WriteLimits
    ) -> None:
        """Write ``data`` to each recipient with at most ``max_unsent`` unsent bytes; report the others.

        The loop runs once per client and flush, so it compares one number and calls nothing else for a fast client.
        """
        refused_count = 0
        for write, buffered_bytes, client in recipients:
            try:
                unsent = buffered_bytes()
                if unsent <= warning:
                    write(data)
                    continue
                if unsent <= max_unsent:
                    limits.on_slow(client, self.resume_position, unsent)
                    write(data)
                    continue
            except RuntimeError:
                pass  # the transport is closed already; the clients after this one must still get their frames
            except Exception:
                logger.exception("writing to a client failed")  # must not cost the other clients their frames either
            limits.on_overflow(client, self.resume_position)
            refused_count += 1
        self.served_count += len(recipients) - refused_count

    def _join(self) -> bytes:
        """Join and wrap the frames. Called as late as possible: until then a batch holds shared frames and no copy."""
        self._data = self._wrap(b"".join(self._frames))
        return self._data
