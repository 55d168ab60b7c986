"""What one person's stream remembers: whom they follow, and what they were sent.

Each stream with ``@me`` has its own copy rather than one shared by all of a person's streams: a copy is
exactly as old as the position of its stream, also while that one catches up, and people have few streams.
"""

from collections.abc import MutableSet

from filters.combine import Subscription
from stream_server.events import Entry, Position

REMEMBERED = 4096
"""So many of the last delivered statuses are remembered, for their deletes."""


class Personal:
    """The state of a stream whose filter can change under it.

    ``known`` is the head at which ``following`` was read: graph entries up to it are in the set already.
    ``start`` is where the stream begins: what was posted after it and is not remembered was never sent.
    """

    def __init__(self, user_id: str, following: MutableSet[str], known: Position, start: Position) -> None:
        self.user_id = user_id
        self.following = following
        self._known = known
        self._sent: dict[str, None] = {}
        self._complete_after = start.status_number

    def concerns(self, entry: Entry) -> bool:
        """Whether this entry changes whom this person follows."""
        return (
            entry.kind in ("follow", "unfollow")
            and entry.event.author == self.user_id
            and entry.position.n > self._known.n
        )

    def outdated(self, reached: Position) -> bool:
        """Whether a gap up to ``reached`` may have held a follow or an unfollow that is not in the set."""
        return reached.n > self._known.n

    def apply(self, entry: Entry) -> str | None:
        """Follow or unfollow as the entry says; gives the user id whose key changed, None if nothing did."""
        target = next(iter(entry.event.people - {self.user_id}), None)
        if target is None:
            return None
        if entry.kind == "follow":
            self.following.add(target)
        else:
            self.following.discard(target)
        return target

    def wants(self, entry: Entry, subscription: Subscription) -> bool:
        """Whether this entry is for this stream; a post that is, is remembered for its delete."""
        if entry.kind == "delete":
            return self._wants_delete(entry, subscription)
        wanted = subscription.matches(entry.event)
        if wanted and entry.kind == "post":
            self._remember(entry.event.status_id or "")
        return wanted

    def _wants_delete(self, entry: Entry, subscription: Subscription) -> bool:
        """Who was sent the post hears of its delete, followed or not; who surely was not, does not."""
        status_id = entry.event.status_id or ""
        if status_id in self._sent:
            return "delete" in subscription.kinds
        surely_unsent = "post" in subscription.kinds and int(status_id or 0) > self._complete_after
        return not surely_unsent and subscription.matches(entry.event)

    def _remember(self, status_id: str) -> None:
        self._sent[status_id] = None
        if len(self._sent) > REMEMBERED:
            forgotten = next(iter(self._sent))
            del self._sent[forgotten]
            self._complete_after = int(forgotten)
