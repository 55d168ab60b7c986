"""What the log lost: told to everyone once, at its place, by who had heard it and by who had not."""

from typing import TYPE_CHECKING

from stream_server.events import Entry, Position
from stream_server.hub import closing as reasons
from stream_server.hub import control
from stream_server.hub.control import Gap
from stream_server.hub.group import Group

if TYPE_CHECKING:
    from stream_server.hub.hub import Hub
    from stream_server.hub.member import Member


class Losses:
    """Where one hub's log does not go on as it was: what was heard is gone, or what others heard and this hub did not.

    Of the second the log has an entry of its own, ``rollback``, which passes here like any other.
    """

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub

    def jump(self, to: Position, reason: str, missed: int | None) -> None:
        """As :meth:`Hub.jump` says."""
        hub = self._hub
        lost = Gap(hub.head.cursor, to, reason, missed)
        for group in hub.groups():
            hub.outflow.settle(group)
            for member in tuple(group.members):
                # What comes after it has lower numbers than members joined at, perhaps.
                member.joined_n = min(member.joined_n, to.n)
                member.lost = (to, hub.head) if reason == control.ROLLED_BACK else None
            if group.members:
                self._tell(group, lost)
        hub.ring.cut(to)
        hub.head = to
        self._resync()

    def hear(self, word: Entry) -> None:
        """Others had heard what the log lost: whoever was not told of it by a jump learns that it is nowhere.

        Nothing that was sent is taken back, so nobody's place changes. Raises MalformedEntry.
        """
        start, end = word.lost()
        self._doubt(start, word.position)
        for group in self._hub.groups():
            unaware = [member for member in group.members if not member.knows_of(start, end)]
            if unaware and len(unaware) == len(group.members):
                self._tell(group, gap_of(word))
            else:
                for member in unaware:  # it shares its frames with some who know: it reads the word by itself
                    self._hub.send_back(member)

    def _doubt(self, start: Position, end: Position) -> None:
        """Sets that were read ahead of this hub may hold a block, a follow or a rule that is lost.

        Who goes by such ends before the word, comes back with that cursor and is told there.
        """
        hub = self._hub
        hub.viewers.forget_read_between(start, end)
        for member in hub.people.members():
            viewer, known = member.ask.viewer, member.ask.rules_known
            if (viewer is not None and not hub.viewers.trusts(viewer)) or (member.ruled and start < known < end):
                hub.retire(member)
                member.close(reasons.RESYNC)

    def _resync(self) -> None:
        """What was lost may have been a block: nobody is shown another entry by sets that may be wrong."""
        hub = self._hub
        hub.viewers.forget()
        for member in hub.people.members():
            if member.ask.viewer is not None or member.ruled:
                hub.retire(member)
                member.close(reasons.RESYNC)

    def _tell(self, group: Group, lost: Gap) -> None:
        """The gap waits like any frame."""
        hub = self._hub
        if group.offer_frame(group.framing.control(control.gap(lost, hub.now_ms())), hub.head):
            hub.outflow.mark(group)


def gap_of(word: Entry) -> Gap:
    """What a ``rollback`` entry tells who had not heard what is lost; raises MalformedEntry."""
    return Gap(word.lost()[0].cursor, word.position, control.ROLLED_BACK, None)


def told_by(word: Entry, member: "Member") -> Gap | None:
    """The same for one who reads past it, None for who was told already; raises MalformedEntry."""
    return None if member.knows_of(*word.lost()) else gap_of(word)
