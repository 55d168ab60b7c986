"""One joined write to the clients of a group, written in slices so that other tasks get their turn."""

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.hub.client import Client
from stream_server.hub.framing import SharedHistory, WrapBytes

logger = logging.getLogger(__name__)


class Recipient(NamedTuple):
    """One membership of a client in a group, from joining to leaving. It holds the client's functions for writing.

    A client that leaves and joins again is a new recipient. Older batches skip it: it has read their entries already.
    """

    write: Callable[[bytes], None]
    buffered_bytes: Callable[[], float]
    client: Client


class Memberships:
    """Live clients of a group. ``version`` counts joins and leaves. A `snapshot` is valid until ``version`` changes.

    ``batched`` counts the events in all batches of the group, and ``written`` those in the batches whose writing has
    begun. So a client's own number of events costs nothing while it is live: see `LiveClients.delivered_to`.
    ``only`` is the recipient of a group with one client, else None.
    """

    __slots__ = ("_by_client", "_snapshot", "batched", "only", "version", "written")

    def __init__(self) -> None:
        self.version = 0
        self.batched = 0
        self.written = 0
        self.only: Recipient | None = None
        self._by_client: dict[Client, Recipient] = {}
        self._snapshot: tuple[Recipient, ...] | None = None

    def __len__(self) -> int:
        return len(self._by_client)

    def __iter__(self) -> Iterator[Client]:
        return iter(self._by_client)

    def add(self, client: Client) -> None:
        self._by_client[client] = Recipient(client.write, client.buffered_bytes, client)
        self._mark_changed()

    def remove(self, client: Client) -> None:
        del self._by_client[client]
        self._mark_changed()

    def snapshot(self) -> tuple[Recipient, ...]:
        """Return the recipients of all clients. The tuple is cached until a client joins or leaves."""
        if self._snapshot is None:
            self._snapshot = tuple(self._by_client.values())
        return self._snapshot

    def still_current(self, recipients: tuple[Recipient, ...]) -> tuple[Recipient, ...]:
        """Return those recipients of an earlier `snapshot` whose clients have not left the group since then."""
        by_client = self._by_client
        return tuple(recipient for recipient in recipients if by_client.get(recipient.client) is recipient)

    def _mark_changed(self) -> None:
        self.version += 1
        self._snapshot = None
        self.only = next(iter(self._by_client.values())) if len(self._by_client) == 1 else None


class WriteLimits(NamedTuple):
    """The limits of unsent bytes of one live client, and the callbacks for a client that exceeds them.

    Attributes:
        warning_bytes: Up to this many unsent bytes, a batch is written to the client without further checks.
        max_bytes: Most unsent bytes, including the batch that is about to be written.
        on_slow: Called with client, resume position and unsent bytes when a client has more than `warning_bytes`.
            Returns whether it wrote something to the client.
        on_overflow: Called with client and resume position when a client has no room for a batch, or its transport is
            closed. The resume position is the position before the first frame of the batch.
    """

    warning_bytes: int
    max_bytes: int
    on_slow: Callable[[Client, Position, float], bool]
    on_overflow: Callable[[Client, Position], None]


class Batch:
    """A group's joined frames: the same bytes for each client that has been in the group since the batch was made.

    Attributes:
        resume_position: Position before the first frame. A client that cannot take the batch catches up from here.
        event_count: Number of frames that are events. Control messages, such as heartbeats, do not count.
        served_count: Number of clients to which the batch was written so far.
        filter_kind: Kind of the group's filter, see `delivery_times.FILTER_KINDS`.
        oldest_ms: Time of the oldest entry of the batch's wave, in ms since 1970.
    """

    __slots__ = (
        "_data", "_frames", "_history", "_next_index", "_recipients", "_version", "_wrap", "event_count", "filter_kind",
        "frame_count", "memberships", "oldest_ms", "resume_position", "served_count", "wave_number",
    )  # fmt: skip

    def __init__(
        self, memberships: Memberships, wrap: WrapBytes, frames: list[bytes], data: bytes | None, resume: Position,
        history: SharedHistory | None = None,
    ) -> None:  # fmt: skip
        """``data`` are the joined and wrapped frames, if they are known. ``history`` is the group's, if it has one."""
        self.memberships = memberships
        self.resume_position = resume
        self.frame_count = self.event_count = len(frames)
        self.served_count = 0
        self.wave_number = self.filter_kind = self.oldest_ms = 0
        self._frames = frames
        self._wrap = wrap
        self._history = history
        self._data = data
        self._recipients = memberships.snapshot()
        self._next_index = 0
        self._version = memberships.version

    @property
    def remaining_count(self) -> int:
        return len(self._recipients) - self._next_index

    def write_slice(self, limits: WriteLimits, max_writes: int) -> None:
        """Write to the next ``max_writes`` clients. Call ``limits.on_overflow`` for each client without room.

        A client without unsent bytes always has room for a batch of one frame, even if it exceeds ``limits.max_bytes``.
        """
        if not self._next_index:
            self.memberships.written += self.event_count
        recipients = self._recipients[self._next_index : self._next_index + max_writes]
        self._next_index += len(recipients)
        if self.memberships.version != self._version:
            recipients = self.memberships.still_current(recipients)
        try:
            data = self._data or self._join()
        except Exception:  # the frames are lost for these clients here, so let them catch up instead
            for recipient in recipients:
                limits.on_overflow(recipient.client, self.resume_position)
                recipient.client.delivered -= self.event_count
            raise
        max_unsent = limits.max_bytes - len(data)
        if self.frame_count == 1:
            max_unsent = max(max_unsent, 0)
        self._write_to(recipients, data, min(max_unsent, limits.warning_bytes), max_unsent, limits)

    def _write_to(
        self, recipients: tuple[Recipient, ...], data: bytes, warning: float, max_unsent: float, limits: WriteLimits
    ) -> None:
        """Write ``data`` to each client with room. The loop runs for every client, so it calls few functions."""
        refused_count = 0
        for write, buffered_bytes, client in recipients:
            try:
                unsent = buffered_bytes()
                if unsent <= warning:
                    write(data)
                    continue
                if unsent <= max_unsent:
                    if limits.on_slow(client, self.resume_position, unsent):
                        write(self._data_after_own_bytes(data))
                    else:
                        write(data)
                    continue
            except RuntimeError:
                pass  # the transport is closed already; the clients after this one must still get their frames
            except Exception:
                logger.exception("writing to a client failed")  # must not cost the other clients their frames either
            limits.on_overflow(client, self.resume_position)
            client.delivered -= self.event_count
            refused_count += 1
        self.served_count += len(recipients) - refused_count

    def _data_after_own_bytes(self, data: bytes) -> bytes:
        """Return the batch in a form that a client can decode which has just got a message of its own."""
        if self._history is None:
            return data
        self._history.forget()
        return self._wrap(b"".join(self._frames))

    def _join(self) -> bytes:
        joined = b"".join(self._frames)  # as late as possible: groups share frames, but not this copy
        self._data = self._wrap(joined) if self._history is None else self._history.wrap(joined, self._version)
        return self._data
