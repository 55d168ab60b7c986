"""Tell each client once that the log lost entries, at the position where the log continues.

There are two cases. This server received entries that are now gone: `RollbackNotices.move_head`. Or only other servers
received them: then a `rollback` entry of the log reports the loss, and `RollbackNotices.announce_rollback` delivers it.
"""

from collections.abc import Callable

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub import messages
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.client import Client
from stream_server.hub.client_registry import ClientRegistry
from stream_server.hub.group import ClientGroup
from stream_server.hub.live_clients import LiveClients
from stream_server.hub.messages import Gap, rollback_gap
from stream_server.hub.visibility.viewer_cache import ViewerCache


class RollbackNotices:
    """Sends `gap` messages for lost entries, and ends streams whose permissions or rules may come from lost entries."""

    def __init__(
        self, live: LiveClients, registry: ClientRegistry, viewers: ViewerCache, ring: Ring, now_ms: Callable[[], int]
    ) -> None:
        self._live = live
        self._registry = registry
        self._viewer_cache = viewers
        self._ring = ring
        self._now_ms = now_ms

    def move_head(self, to: Position, reason: str, missed_count: int | None) -> None:
        """Set the hub's head to ``to``, and send live clients a `gap`. See `Hub.move_head`.

        Ends the streams that have a viewer or saved rules: the missing entries may have changed relations or rules.
        """
        live = self._live
        gap = Gap(live.head.cursor, to, reason, missed_count)
        for group in live.groups():
            live.flusher.flush_group(group)
            for client in group.memberships:
                client.last_rollback = (to, live.head) if reason == messages.ROLLED_BACK else None
            if group.memberships:
                self._queue_gap(group, gap)
        self._ring.cut_after(to)
        live.head = to
        self._viewer_cache.clear()
        for client in self._registry.list_clients():
            if client.request.viewer is not None or client.uses_saved_rules:  # what is lost may have been a block
                self._resync(client)

    def announce_rollback(self, rollback_entry: Entry) -> None:
        """``rollback_entry`` reports lost entries: send a `gap` to each live client that has not got one for this loss.

        The clients keep their positions, because this server sent them no lost entry. It ends streams whose relations
        or rules were read from lost entries. Raises `MalformedEntry` if the entry cannot be decoded.
        """
        start, end = rollback_entry.lost_range()
        self._disconnect_stale_clients(start, rollback_entry.position)
        for group in self._live.groups():
            unaware = [client for client in group.memberships if not client.knows_rollback(start, end)]
            if unaware and len(unaware) == len(group.memberships):
                self._queue_gap(group, rollback_gap(rollback_entry))
            else:  # they share frames with clients that know of the loss, so let them read the entry by themselves
                for client in unaware:
                    self._live.demote(client)

    def _disconnect_stale_clients(self, start: Position, end: Position) -> None:
        """End the streams whose relations or saved rules were read at a log position between ``start`` and ``end``.

        The log lost entries there, so the streams may apply a lost block, follow or rule. The clients reconnect with
        their cursors and then receive the `gap`.
        """
        self._viewer_cache.forget_read_between(start, end)
        for client in self._registry.list_clients():
            viewer, rules_read_at = client.request.viewer, client.request.rules_read_at
            is_viewer_stale = viewer is not None and not self._viewer_cache.is_current(viewer)
            if is_viewer_stale or (client.uses_saved_rules and start < rules_read_at < end):
                self._resync(client)

    def _resync(self, client: Client) -> None:
        self._live.leave(client)
        client.disconnect(reasons.RESYNC)

    def _queue_gap(self, group: ClientGroup, gap: Gap) -> None:
        self._live.queue_control(group, group.framing.encode_control(messages.gap_message(gap, self._now_ms())))
