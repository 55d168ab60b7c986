"""One joined write to the clients of a group, written in slices so that other tasks get their turn."""

import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

from stream_server.events.position import Position
from stream_server.hub.client import Client
from stream_server.hub.messages import SharedHistory, WrapBytes

logger = logging.getLogger(__name__)


class WriteLimits(NamedTuple):
    """The limits of unsent bytes of one live client, and the callbacks for a client that exceeds them.

    Attributes:
        warning_bytes: Up to this many unsent bytes, a batch is written to the client without further checks.
        max_bytes: Most unsent bytes, including the batch that is about to be written.
        on_slow: Called with client, resume position and unsent bytes when a client has more than `warning_bytes`.
            Returns whether it wrote something to the client.
        on_overflow: Called with client and batch when a client has no room for the batch, or its transport is closed.
    """

    warning_bytes: int
    max_bytes: int
    on_slow: Callable[[Client, Position, float], bool]
    on_overflow: "Callable[[Client, Batch], None]"


class Members(Protocol):
    """The part of a `ClientGroup` that its batches use."""

    version: int
    batched: int

    def snapshot(self) -> tuple[Client, ...]:
        """Return the present clients."""


class Batch:
    """A group's joined frames: the same bytes for each client that has been in the group since the batch was made.

    Attributes:
        group: The group.
        resume_position: Position before the first frame. A client that cannot take the batch catches up from here.
        event_count: Number of frames that are events. Control messages, such as heartbeats, do not count.
        batched_before: Number of events in the earlier batches of the group.
        served_count: Number of clients to which the batch was written so far.
        filter_kind: Kind of the group's filter, see `group.FILTER_KINDS`.
        oldest_ms: Time of the oldest entry of the batch's wave, in ms since 1970.
    """

    __slots__ = (
        "_data", "_frames", "_history", "_next_index", "_recipients", "_version", "_wrap", "batched_before",
        "event_count", "filter_kind", "group", "oldest_ms", "resume_position", "served_count", "wave_number",
    )  # fmt: skip

    def __init__(
        self, group: Members, wrap: WrapBytes, frames: list[bytes], control_count: int, data: bytes | None,
        resume: Position, history: SharedHistory | None = None,
    ) -> None:  # fmt: skip
        """``data`` are the joined and wrapped frames, if they are known. ``history`` is the group's, if it has one.

        ``control_count`` of the frames are control messages.
        """
        self.group = group
        self.resume_position = resume
        self.event_count = len(frames) - control_count
        self.batched_before = group.batched
        self.served_count = self.wave_number = self.filter_kind = self.oldest_ms = 0
        self._frames = frames
        self._wrap = wrap
        self._history = history
        self._data = data
        self._recipients = group.snapshot()
        self._next_index = 0
        self._version = group.version

    @property
    def remaining_count(self) -> int:
        return len(self._recipients) - self._next_index

    def write_slice(self, limits: WriteLimits, max_writes: int) -> None:
        """Write to the next ``max_writes`` clients. Call ``limits.on_overflow`` for each client without room.

        A client without unsent bytes always has room for a batch of one frame, even if it exceeds ``limits.max_bytes``.
        """
        recipients = self._recipients[self._next_index : self._next_index + max_writes]
        self._next_index += len(recipients)
        if self.group.version != self._version:  # a client that left and came back has read the frames already
            recipients = tuple(
                client for client in recipients if client.group is self.group and client.joined_version <= self._version
            )
        try:
            data = self._data or self._join()
        except Exception:  # the frames are lost for these clients here, so let them catch up instead
            for client in recipients:
                limits.on_overflow(client, self)
            raise
        max_unsent = limits.max_bytes - len(data)
        if len(self._frames) == 1:
            max_unsent = max(max_unsent, 0)
        self._write_to(recipients, data, min(max_unsent, limits.warning_bytes), max_unsent, limits)

    def _write_to(
        self, recipients: tuple[Client, ...], data: bytes, warning: float, max_unsent: float, limits: WriteLimits
    ) -> None:
        """Write ``data`` to each client with room. The loop runs for every client, so it calls few functions."""
        refused_count = 0
        for client in recipients:
            try:
                unsent = client.buffered_bytes()
                if unsent <= warning:
                    client.write(data)
                    continue
                if unsent <= max_unsent:
                    if limits.on_slow(client, self.resume_position, unsent):
                        client.write(self._data_after_own_bytes(data))
                    else:
                        client.write(data)
                    continue
            except RuntimeError:
                pass  # the transport is closed already; the clients after this one must still get their frames
            except Exception:
                logger.exception("writing to a client failed")  # must not cost the other clients their frames either
            limits.on_overflow(client, self)
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
