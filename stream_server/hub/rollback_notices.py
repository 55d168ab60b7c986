"""Tell clients that the log lost entries: once to each client, at the position where the log continues.

There are two cases. This hub received entries that are now gone: `RollbackNotices.move_head`. Or only other servers
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
    """Sends `gap` messages for lost entries, and ends the streams whose state may depend on lost entries."""

    def __init__(
        self,
        live: LiveClients,
        registry: ClientRegistry,
        viewer_cache: ViewerCache,
        ring: Ring,
        *,
        now_ms: Callable[[], int],
    ) -> None:
        self._live = live
        self._registry = registry
        self._viewer_cache = viewer_cache
        self._ring = ring
        self._now_ms = now_ms

    def move_head(self, to: Position, reason: str, missed_count: int | None) -> None:
        """Continue after ``to``, and send every live client a `gap`. See `Hub.move_head`."""
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
        self._disconnect_personal_clients()

    def announce_rollback(self, rollback_entry: Entry) -> None:
        """Send a `gap` to the live clients that `move_head` sent none for this loss. Raises `MalformedEntry`.

        The positions of the clients stay as they are, because this hub has sent none of the lost entries.
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
        """End streams whose viewer or saved rules were read from lost entries, between ``start`` and ``end``.

        Such a read was ahead of this hub, so it may include a block, a follow or a rule that is lost. The stream ends
        before the `gap`. Its client reconnects with the cursor and receives the `gap` then.
        """
        self._viewer_cache.forget_read_between(start, end)
        self._disconnect_where(
            lambda client: (
                (client.request.viewer is not None and not self._viewer_cache.is_current(client.request.viewer))
                or (client.uses_saved_rules and start < client.request.rules_read_at < end)
            )
        )

    def _disconnect_personal_clients(self) -> None:
        """End all streams that depend on a viewer or on saved rules: a lost entry may have been a block or a rule."""
        self._viewer_cache.clear()
        self._disconnect_where(lambda client: client.request.viewer is not None or client.uses_saved_rules)

    def _disconnect_where(self, is_affected: Callable[[Client], bool]) -> None:
        """End the affected streams with `resync`, after what waits for them was written."""
        for client in self._registry.list_clients():
            if is_affected(client):
                self._live.leave(client)
                client.disconnect(reasons.RESYNC)

    def _queue_gap(self, group: ClientGroup, gap: Gap) -> None:
        """Let a gap message wait in a group for the next flush."""
        self._live.queue_control(group, group.framing.encode_control(messages.gap_message(gap, self._now_ms())))
