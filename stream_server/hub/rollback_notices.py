"""What the log lost: told to everyone once, at its place, by who had heard it and by who had not."""

from typing import TYPE_CHECKING

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub import messages
from stream_server.hub.group import ClientGroup
from stream_server.hub.messages import Gap

if TYPE_CHECKING:
    from stream_server.hub.client import Client
    from stream_server.hub.hub import Hub


class RollbackNotices:
    """Where one hub's log does not go on as it was: what was heard is gone, or what others heard and this hub did not.

    Of the second the log has an entry of its own, ``rollback``, which passes here like any other.
    """

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub

    def move_head(self, to: Position, reason: str, missed_count: int | None) -> None:
        """As :meth:`Hub.move_head` says."""
        hub = self._hub
        lost = Gap(hub.head.cursor, to, reason, missed_count)
        for group in hub.live_groups():
            hub.flusher.flush_group(group)
            for member in tuple(group.clients):
                # What comes after it has lower numbers than members joined at, perhaps.
                member.joined_at_number = min(member.joined_at_number, to.n)
                member.last_rollback = (to, hub.head) if reason == messages.ROLLED_BACK else None
            if group.clients:
                self._queue_gap(group, lost)
        hub.ring.cut_after(to)
        hub.head = to
        self._disconnect_personal_clients()

    def announce_rollback(self, rollback_entry: Entry) -> None:
        """Others had heard what the log lost: whoever was not told of it by a jump learns that it is nowhere.

        Nothing that was sent is taken back, so nobody's place changes. Raises MalformedEntry.
        """
        start, end = rollback_entry.lost_range()
        self._disconnect_stale_clients(start, rollback_entry.position)
        for group in self._hub.live_groups():
            unaware = [member for member in group.clients if not member.knows_rollback(start, end)]
            if unaware and len(unaware) == len(group.clients):
                self._queue_gap(group, rollback_gap(rollback_entry))
            else:
                for member in unaware:  # it shares its frames with some who know: it reads the word by itself
                    self._hub.demote(member)

    def _disconnect_stale_clients(self, start: Position, end: Position) -> None:
        """Sets that were read ahead of this hub may hold a block, a follow or a rule that is lost.

        Who goes by such ends before the word, comes back with that cursor and is told there.
        """
        hub = self._hub
        hub.viewer_cache.forget_read_between(start, end)
        for member in hub.registry.list_clients():
            viewer, known = member.request.viewer, member.request.rules_read_at
            if (viewer is not None and not hub.viewer_cache.is_current(viewer)) or (
                member.uses_saved_rules and start < known < end
            ):
                hub.leave_live(member)
                member.disconnect(reasons.RESYNC)

    def _disconnect_personal_clients(self) -> None:
        """What was lost may have been a block: nobody is shown another entry by sets that may be wrong."""
        hub = self._hub
        hub.viewer_cache.clear()
        for member in hub.registry.list_clients():
            if member.request.viewer is not None or member.uses_saved_rules:
                hub.leave_live(member)
                member.disconnect(reasons.RESYNC)

    def _queue_gap(self, group: ClientGroup, gap: Gap) -> None:
        """The gap waits like any frame."""
        hub = self._hub
        if group.queue_control_frame(group.framing.encode_control(messages.gap_message(gap, hub.now_ms())), hub.head):
            hub.flusher.schedule_group(group)


def rollback_gap(rollback_entry: Entry) -> Gap:
    """What a ``rollback`` entry tells who had not heard what is lost; raises MalformedEntry."""
    return Gap(rollback_entry.lost_range()[0].cursor, rollback_entry.position, messages.ROLLED_BACK, None)


def unseen_rollback_gap(rollback_entry: Entry, client: "Client") -> Gap | None:
    """The same for one who reads past it, None for who was told already; raises MalformedEntry."""
    return None if client.knows_rollback(*rollback_entry.lost_range()) else rollback_gap(rollback_entry)
