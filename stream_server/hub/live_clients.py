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
from stream_server.hub.window import Window


class LiveClients:
    """The live clients of one server process. The position of each of them is `head`.

    Attributes:
        head: Position of the last entry that was offered to the clients.
        count: Number of these clients.
        private_group_count: Number of groups with a private view.
        summaries: What the live clients of summary streams have counted.
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
        self.summaries = Summaries(self, self._groups, now_ms)

    def groups(self) -> tuple[ClientGroup, ...]:
        """Return the groups of live clients. Clients with equal filters and equal framing are in one group."""
        return tuple(self._groups.values())

    def join(self, client: Client) -> None:
        """Make a client live. Its position must equal `head`: do not ``await`` between that check and this call."""
        client.use_private_view_if_needed()
        key = client.group_key
        group = self._groups.get(key)
        if group is None:
            group = ClientGroup(key, client.subscription, client.framing, client.private_view)
            group.next_heartbeat_at = self._loop.time() + self.limits.heartbeat_seconds
            self.index.add(group, client.subscription)  # may raise, so before the group can be found by its key
            self._groups[key] = group
            if group.private_view is not None:
                self.private_group_count += 1
                self._registry.add_private_group(group)
        if client.window is not None:
            self.summaries.join(group, client)
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

        A client of a summary takes along what its group has counted. If a `count` was not written to it, it counts
        anew from the end of the one before. ``unwritten_events`` of the events in the group's batches were not written
        to the client.
        """
        group = _group_of(client)
        if group.window is not None:
            is_told = position == self.head
            client.window = group.window.copy() if is_told else Window(group.framing.summary_ms, position)
        client.written_before_joining += group.batched - client.batched_before_joining - unwritten_events
        group.remove(client)
        self.count -= 1
        client.position = position
        if group.members:
            return
        del self._groups[group.key]
        if group.window is not None:
            self.summaries.forget(group)
        self.index.remove(group)
        if group.private_view is not None:
            self.private_group_count -= 1
            self._registry.discard_private_group(group)

    def queue_frame(self, group: ClientGroup, frame: bytes, *, is_control: bool = False) -> None:
        """Add an encoded message to what waits for a client group. See `ClientGroup.queue_frame`."""
        resume_position = self.head if group.window is None else group.window.start
        if group.queue_frame(frame, resume_position, is_control=is_control):
            self.flusher.schedule((group,))

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


MAX_CLOSED = 200
"""Most windows that end in one iteration of the event loop, in about 4 ms."""


class Summaries:
    """Counts for the live clients of summary streams, by group, and sends what was counted.

    The key of such a group has the start of its window. So clients share a group if their windows have counted the
    same, as all clients do whose last `count` was the same. When a window ends, the next one of all groups with equal
    filters begins at the head: from then on they are one group.

    Attributes:
        groups: The groups of these clients.
    """

    def __init__(self, live: LiveClients, groups: dict[Hashable, ClientGroup], now_ms: Callable[[], int]) -> None:
        """``groups`` are all groups by their keys."""
        self.groups: set[ClientGroup] = set()
        self._to_join: set[ClientGroup] = set()
        self._live = live
        self._by_key = groups
        self._now_ms = now_ms

    def join(self, group: ClientGroup, client: Client) -> None:
        """Let the window of a group count for a client that joins it. A new group takes over that of the client."""
        if group.window is None:
            assert client.window is not None
            group.window = client.window
            if not group.window.count:
                group.window.begin_period(self._now_ms())
            self.groups.add(group)
        client.window = None

    def count(self, group: ClientGroup, position: Position, matched_json: bytes | None) -> None:
        """Count an entry for the clients of a group. End the window before, if the entry is after its period."""
        window = _window_of(group)
        if position.ms >= window.end_ms:
            self.close(group)
        window.count_event(position, matched_json)
        if window.count == 1:
            window.put_off(self._now_ms())

    def close(self, group: ClientGroup) -> None:
        """Queue a `count` of all that a group has counted up to the head. Its window counts on for the same period."""
        window = _window_of(group)
        resume_position, notice = window.start, window.close(self._live.head)
        frame = group.framing.encode_control(messages.notice_message(notice, self._now_ms()))
        if group.queue_frame(frame, resume_position):
            self._live.flusher.schedule((group,))
        self._rename(group)

    def restart(self, group: ClientGroup, position: Position) -> None:
        """Let a window that has just ended begin at another position, behind a gap."""
        _window_of(group).move(position)
        self._rename(group)

    def forget(self, group: ClientGroup) -> None:
        """Count no longer for a group whose last client has left."""
        self.groups.discard(group)
        self._to_join.discard(group)

    def close_due(self, now_ms: int) -> None:
        """End the windows whose period is over at ``now_ms``. Then join the groups that have counted the same.

        All periods end at once, so it goes on in the next iteration of the event loop if there are many.
        """
        self._close_all([group for group in self.groups if _window_of(group).is_due(now_ms)], now_ms)

    def _close_all(self, due: list[ClientGroup], now_ms: int) -> None:
        later = due[MAX_CLOSED:]
        for group in due[:MAX_CLOSED]:
            window = _window_of(group)
            if group.members and window.is_due(now_ms):  # it may have ended meanwhile
                self.close(group)
                window.begin_period(now_ms)
        if later:
            asyncio.get_running_loop().call_soon(self._close_all, later, now_ms)
            return
        for group in tuple(self._to_join):
            other = self._by_key.get(_summary_key(group), group)
            small, large = sorted((group, other), key=lambda each: len(each.members))
            if small is not large:
                self._move_all(small, large)
            if large.members:
                self._rename(large)

    def _move_all(self, source: ClientGroup, target: ClientGroup) -> None:
        """Move the clients of a group to another one that has counted the same."""
        live = self._live
        live.flusher.flush_group(source)
        for client in tuple(source.members):
            live.remove(client, live.head)
            client.window = None
            target.add(client)
            live.count += 1

    def _rename(self, group: ClientGroup) -> None:
        """Give a group the key of its present window, or one that no client has, if another group has that key."""
        if group.private_view is None:
            del self._by_key[group.key]
            key = _summary_key(group)
            self._to_join.discard(group)
            if key in self._by_key:
                self._to_join.add(group)
                key = object()
            group.key = key
            self._by_key[key] = group


def _summary_key(group: ClientGroup) -> Hashable:
    """Return the key of the clients that have the filters, the framing and the window of a group."""
    return group.subscription.canonical_form, group.framing, _window_of(group).start


def _window_of(group: ClientGroup) -> Window:
    assert group.window is not None
    return group.window


def _group_of(client: Client) -> ClientGroup:
    assert isinstance(client.group, ClientGroup)
    return client.group
