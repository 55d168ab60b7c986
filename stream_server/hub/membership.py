"""The clients of one group, and immutable snapshots of them for batches.

Each join makes a new `Recipient`. So a batch can tell a client that never left its group from a client that left and
joined again: the second one has another `Recipient`, and has already read the frames of the batch from the ring or log.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from stream_server.hub.client import Client


class Recipient(NamedTuple):
    """One client's membership of a group, with the two methods that a flush calls once per client."""

    write: Callable[[bytes], None]
    buffered_bytes: Callable[[], float]
    client: Client


class Memberships:
    """The live clients of one group.

    Attributes:
        version: Number of joins and leaves so far. While it is unchanged, every snapshot is still current.
    """

    __slots__ = ("_by_client", "_snapshot", "version")

    def __init__(self) -> None:
        self.version = 0
        self._by_client: dict[Client, Recipient] = {}
        self._snapshot: tuple[Recipient, ...] | None = None

    def __len__(self) -> int:
        return len(self._by_client)

    def __iter__(self) -> Iterator[Client]:
        return iter(self._by_client)

    def add(self, client: Client) -> None:
        """Add a client. It receives batches that are taken from now on."""
        self._by_client[client] = Recipient(client.write, client.buffered_bytes, client)
        self._mark_changed()

    def remove(self, client: Client) -> None:
        """Remove a client. Batches that were taken before skip it."""
        del self._by_client[client]
        self._mark_changed()

    def snapshot(self) -> tuple[Recipient, ...]:
        """Return all recipients. The tuple is cached until a client joins or leaves."""
        if self._snapshot is None:
            self._snapshot = tuple(self._by_client.values())
        return self._snapshot

    def still_current(self, recipients: tuple[Recipient, ...]) -> tuple[Recipient, ...]:
        """Return those recipients whose client has not left since their snapshot, not even for a moment."""
        by_client = self._by_client
        return tuple(recipient for recipient in recipients if by_client.get(recipient.client) is recipient)

    def _mark_changed(self) -> None:
        """Count a join or leave and drop the cached snapshot."""
        self.version += 1
        self._snapshot = None
