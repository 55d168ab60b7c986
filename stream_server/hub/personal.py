"""What one stream with a view of its own remembers: whom its filter follows, and what it was sent.

A stream whose filter follows the graph has its own copy of whom its person follows, rather than the one that all of a
person's streams share: the copy is exactly as old as the position of its stream, also while that one catches up.
What may be seen is another question; it goes by today, and is asked of the shared :class:`Viewer`. What was sent is
remembered for its end: a delete or an ``uncomment`` must come to whoever was shown what it takes back.
"""

from collections.abc import MutableSet

from filters.combine import Subscription
from stream_server.events import BRINGS, FOLLOWERS, PUBLIC, TAKES_BACK, Entry, Position
from stream_server.hub.viewer import Viewer

REMEMBERED = 4096
"""So many of the last delivered statuses and comments are remembered, for their ends."""


class Personal:
    """The state of a stream that is not the same for everyone who asks for the same.

    ``following`` is None where the filter does not follow the graph; ``known`` is the head at which it was copied:
    graph entries up to it are in the set already. ``start`` is where the stream begins: what was said after it and
    is not remembered was never sent. ``own`` says that it is the stream of what concerns its user.
    """

    def __init__(
        self,
        viewer: Viewer,
        start: Position,
        *,
        following: MutableSet[str] | None = None,
        known: Position | None = None,
        own: bool = False,
    ) -> None:
        self.viewer = viewer
        self.following = following
        self.own = own
        self._known = start if known is None else known
        self._sent: dict[str, None] = {}
        self._complete_after = start.status_number

    @property
    def user_id(self) -> str:
        """Whose stream it is."""
        return self.viewer.user_id

    def concerns(self, entry: Entry) -> bool:
        """Whether this entry changes whom this stream's filter follows."""
        return (
            self.following is not None
            and entry.kind in ("follow", "unfollow")
            and entry.event.author == self.user_id
            and entry.position.n > self._known.n
        )

    def outdated(self, reached: Position) -> bool:
        """Whether a gap up to ``reached`` may have held a follow or an unfollow that is not in the set."""
        return self.following is not None and reached.n > self._known.n

    def apply(self, entry: Entry) -> str | None:
        """Follow or unfollow as the entry says; gives the user id whose key changed, None if nothing did."""
        target = next(iter(entry.event.people - {self.user_id}), None)
        if target is None or self.following is None:
            return None
        if entry.kind == "follow":
            self.following.add(target)
        else:
            self.following.discard(target)
        return target

    def pick(
        self, entry: Entry, subscription: Subscription, *, gone: bool = False, original_gone: bool = False
    ) -> Entry | None:
        """The entry as it is for this stream, None if it is not; a post or a comment is remembered for its end.

        So is one that could be seen when it was written, though not today, or is ``gone``, deleted by now: its end
        says nothing of it but ids. A quote whose original is gone is told without it.
        """
        if entry.kind in TAKES_BACK:
            return self.viewer.hears_end(entry, own_stream=self.own) if self._wants_end(entry, subscription) else None
        if not self._may_ask_for(entry, subscription):
            return None
        shown = None if gone else self.viewer.shows(entry, own_stream=self.own)
        if shown is entry and original_gone and entry.quoted is not None:
            shown = entry.without_original()
        shown = self._asked(entry, shown, subscription)
        if entry.kind in BRINGS and (shown or self._asked(entry, self.viewer.reached(entry), subscription)):
            self._remember(entry.subject or "")
        if shown is not None and entry.kind == "notification":
            self._remember_told(entry)
        return shown

    def _may_ask_for(self, entry: Entry, subscription: Subscription) -> bool:
        """Of a quote it is not known before it is seen how it is told."""
        return entry.quoted is not None or self._asks_for(entry, subscription)

    def _asked(self, entry: Entry, told: Entry | None, subscription: Subscription) -> Entry | None:
        """``entry`` as it is told, if a quote is asked for as it is told: a rule looks at what a quote shows."""
        if told is None or entry.quoted is None:
            return told
        return told if self._asks_for(told, subscription) else None

    def _asks_for(self, entry: Entry, subscription: Subscription) -> bool:
        """By the filter; what is for certain people only is asked for by being one of them, on one's own stream."""
        if entry.audience == PUBLIC or entry.audience.startswith(FOLLOWERS):
            return subscription.matches(entry.event)
        return self.own and entry.kind in subscription.kinds

    def _wants_end(self, entry: Entry, subscription: Subscription) -> bool:
        """Who was sent what it takes back hears of it, following or not; who surely was not, does not."""
        subject = entry.subject or ""
        if subject in self._sent:
            return entry.kind in subscription.kinds
        surely_unsent = TAKES_BACK[entry.kind] in subscription.kinds and int(subject or 0) > self._complete_after
        if surely_unsent or not self._may_ask_for(entry, subscription):
            return False
        return self._asked(entry, self.viewer.reached(entry), subscription) is not None

    def _remember_told(self, entry: Entry) -> None:
        """Who was shown a status or a comment by being told of it, hears of its end as well."""
        for subject in (entry.shown.status, entry.shown.comment):
            if subject is not None:
                self._remember(subject)

    def _remember(self, subject: str) -> None:
        self._sent[subject] = None
        if len(self._sent) > REMEMBERED:
            forgotten = next(iter(self._sent))
            del self._sent[forgotten]
            self._complete_after = max(self._complete_after, int(forgotten))
