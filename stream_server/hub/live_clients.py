"""The clients at the head: their groups, the subscription index, the flusher, and how clients join and leave.

`head` is the position of every live client. While an entry is being routed, `head` is still the position before it, so
a client that is demoted meanwhile reads this entry again by itself. The router moves `head` after routing.
"""

import asyncio
from collections.abc import Callable, Hashable

from filters.subscription_index import SubscriptionIndex
from stream_server.events.position import Position
from stream_server.hub import messages
from stream_server.hub.client import Client
from stream_server.hub.client_registry import ClientRegistry
from stream_server.hub.flusher import Flusher
from stream_server.hub.group import Batch, ClientGroup, WriteLimits
from stream_server.hub.limits import HubCounters, HubLimits


class LiveClients:
    """The live clients of one server process. The position of each of them is `head`.

    Attributes:
        head: Position of the last entry that was offered to the clients.
        count: Number of these clients.
        private_group_count: Number of groups with a private view.
    """

    def __init__(
        self, limits: HubLimits, head: Position, registry: ClientRegistry, counters: HubCounters,
        *, now_ms: Callable[[], int],
    ) -> None:  # fmt: skip
        self.head = head
        self.limits = limits
        self.index: SubscriptionIndex[ClientGroup] = SubscriptionIndex()
        writes = WriteLimits(limits.warning_bytes, limits.buffer_bytes, self._on_slow, self._on_overflow)
        self.flusher = Flusher(writes, now_ms)
        self.private_group_count = 0
        self._registry = registry
        self._counters = counters
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._groups: dict[Hashable, ClientGroup] = {}
        self.count = 0

    def groups(self) -> tuple[ClientGroup, ...]:
        """Return the groups of live clients. Clients with equal filters and equal framing are in one group."""
        return tuple(self._groups.values())

    def join(self, client: Client) -> None:
        """Make a client live. Its position must equal `head`: do not ``await`` between that check and this call."""
        client.use_private_view_if_needed()
        key = client.group_key
        group = self._groups.get(key)
        if group is not None:
            self.flusher.seal_group(group)  # the waiting frames are before the newcomer's position
        else:
            group = ClientGroup(key, client.subscription, client.framing, client.private_view)
            group.next_heartbeat_at = self._loop.time() + self.limits.heartbeat_seconds
            self.index.add(group, client.subscription)  # may raise, so before the group can be found by its key
            self._groups[key] = group
            if group.private_view is not None:
                self.private_group_count += 1
                self._registry.add_private_group(group)
        group.add(client)
        self.count += 1

    def leave(self, client: Client) -> None:
        """Flush the client's group, then remove the client from it. Does nothing for a client that is not live."""
        self.flush(client)
        if client.group is not None:  # otherwise a frame did not fit, and the flush has removed it
            self.remove(client, self.head)

    def demote(self, client: Client) -> None:
        """Make a live client catch up, from `head` on. Flush its group first, so that no frame is lost."""
        self.flush(client)
        if client.group is not None:  # otherwise a frame did not fit, and the client is catching up already
            self.remove(client, self.head)
            client.wake()

    def flush(self, client: Client) -> None:
        """Write all waiting frames of the client's group at once. Does nothing for a client that is not live."""
        if client.group is not None:
            self.flusher.flush_group(_group_of(client))

    def remove(self, client: Client, position: Position, unwritten_events: int = 0) -> None:
        """Remove a live client from its group without a flush. ``position`` becomes the client's position.

        ``unwritten_events`` of the events in the group's batches were not written to the client.
        """
        group = _group_of(client)
        client.written_before_joining = client.delivered - unwritten_events
        group.remove(client)
        self.count -= 1
        client.position = position
        if group.members:
            return
        del self._groups[group.key]
        self.flusher.discard_group(group)
        self.index.remove(group)
        if group.private_view is not None:
            self.private_group_count -= 1
            self._registry.discard_private_group(group)

    def queue_control(self, group: ClientGroup, frame: bytes) -> None:
        """Add an encoded control message to the frames that wait for the next flush to a client group."""
        if group.queue_control_frame(frame, self.head):
            self.flusher.schedule_groups((group,))

    def _on_overflow(self, client: Client, batch: Batch) -> None:
        """Demote a client that had no room for a batch. It catches up from the position before the batch."""
        self._counters.slow_demotions += not client.is_poll
        client.overflowed = True
        self.remove(client, batch.resume_position, _group_of(client).batched - batch.batched_before)
        client.wake()

    def _on_slow(self, client: Client, position: Position, unsent_bytes: float) -> bool:
        warning = client.slow_warning(position, unsent_bytes / self.limits.buffer_bytes, self._loop.time())
        if warning is not None:
            client.send_control(messages.notice_message(warning, self._now_ms()))
        return warning is not None


def _group_of(client: Client) -> ClientGroup:
    assert isinstance(client.group, ClientGroup)
    return client.group
