"""What one stream with a view of its own remembers: whom its filter follows, and what it was sent.

A stream whose filter follows the graph has its own copy of whom its person follows, rather than the one that all of a
person's streams share: the copy is exactly as old as the position of its stream, also while that one catches up.
What may be seen is another question; it goes by today, and is asked of the shared :class:`Viewer`. What was sent is
remembered for its end: a delete or an ``uncomment`` must come to whoever was shown what it takes back.
"""

from collections.abc import MutableSet

from filters.subscription import Subscription
from stream_server.events.entry import Entry
from stream_server.events.kinds import CREATION_KINDS, DELETION_KINDS, FOLLOWERS_PREFIX, PUBLIC_AUDIENCE
from stream_server.events.position import Position
from stream_server.hub.visibility.rendering import NOTHING_DELETED, Deleted, entry_to_match
from stream_server.hub.visibility.viewer import Viewer

MAX_REMEMBERED_SUBJECTS = 4096
"""So many of the last delivered statuses and comments are remembered, for their ends."""


class PrivateView:
    """The state of a stream that is not the same for everyone who asks for the same.

    ``following`` is None where the filter does not follow the graph; ``known`` is the head at which it was copied:
    graph entries up to it are in the set already. ``start`` is where the stream begins: what was said after it and
    is not remembered was never sent. ``is_own_stream`` says that it is the stream of what concerns its user.
    """

    def __init__(
        self,
        viewer: Viewer,
        start_position: Position,
        *,
        following: MutableSet[str] | None = None,
        following_read_at: Position | None = None,
        is_own_stream: bool = False,
    ) -> None:
        self.viewer = viewer
        self.following = following
        self.is_own_stream = is_own_stream
        self._following_read_at = start_position if following_read_at is None else following_read_at
        self._sent_subjects: dict[str, None] = {}
        self._memory_complete_after = start_position.status_number

    @property
    def user_id(self) -> str:
        """Whose stream it is."""
        return self.viewer.user_id

    def is_follow_change(self, entry: Entry) -> bool:
        """Whether this entry changes whom this stream's filter follows."""
        return (
            self.following is not None
            and entry.kind in ("follow", "unfollow")
            and entry.event.author == self.user_id
            and entry.position.n > self._following_read_at.n
        )

    def is_outdated_by_gap(self, gap_end: Position) -> bool:
        """Whether a gap up to ``gap_end`` may have held a follow or an unfollow that is not in the set."""
        return self.following is not None and gap_end.n > self._following_read_at.n

    def apply_follow_change(self, entry: Entry) -> str | None:
        """Follow or unfollow as the entry says; gives the user id whose key changed, None if nothing did."""
        target = next(iter(entry.event.user_ids - {self.user_id}), None)
        if target is None or self.following is None:
            return None
        if entry.kind == "follow":
            self.following.add(target)
        else:
            self.following.discard(target)
        return target

    def render(self, entry: Entry, subscription: Subscription, deleted: Deleted = NOTHING_DELETED) -> Entry | None:
        """The entry as it is for this stream, None if it is not; a post or a comment is remembered for its end.

        So is one that could be seen when it was written, though not today, or is ``is_deleted``, deleted by now: its end
        says nothing of it but ids. A quote whose original is gone is told without it.
        """
        if entry.kind in CREATION_KINDS:
            return (
                self.viewer.render_removal(entry, own_stream=self.is_own_stream)
                if self._should_send_removal(entry, subscription)
                else None
            )
        if not self._may_match(entry, subscription):
            return None
        shown = None if deleted.subject else self.viewer.render_if_visible(entry, own_stream=self.is_own_stream)
        if shown is entry and deleted.original and entry.quoted_author is not None:
            shown = entry.without_original()
        shown = self._match_rendered(entry, shown, subscription)
        if entry.kind in DELETION_KINDS and (
            shown or self._match_rendered(entry, self.viewer.render_at_post_time(entry), subscription)
        ):
            self._remember(entry.subject_id or "")
        if shown is not None and entry.kind == "notification":
            self._remember_notification(entry)
        return shown

    def _may_match(self, entry: Entry, subscription: Subscription) -> bool:
        """Of a quote it is not known before it is seen how it is told."""
        return entry.quoted_author is not None or self._matches(entry, subscription)

    def _match_rendered(self, entry: Entry, rendered: Entry | None, subscription: Subscription) -> Entry | None:
        """``entry`` as it is told, if a quote is asked for as it is told: a rule looks at what a quote shows."""
        if rendered is None or entry.quoted_author is None:
            return rendered  # `_may_match` has matched it already
        return rendered if self._matches(entry_to_match(entry, rendered), subscription) else None

    def _matches(self, entry: Entry, subscription: Subscription) -> bool:
        """By the filter; what is for certain people only is asked for by being one of them, on one's own stream."""
        if entry.audience == PUBLIC_AUDIENCE or entry.audience.startswith(FOLLOWERS_PREFIX):
            return subscription.matches(entry.event)
        return self.is_own_stream and entry.kind in subscription.kinds

    def _should_send_removal(self, entry: Entry, subscription: Subscription) -> bool:
        """Who was sent what it takes back hears of it, following or not; who surely was not, does not."""
        subject = entry.subject_id or ""
        if subject in self._sent_subjects:
            return entry.kind in subscription.kinds
        surely_unsent = (
            CREATION_KINDS[entry.kind] in subscription.kinds and int(subject or 0) > self._memory_complete_after
        )
        if surely_unsent or not self._may_match(entry, subscription):
            return False
        return self._match_rendered(entry, self.viewer.render_at_post_time(entry), subscription) is not None

    def _remember_notification(self, entry: Entry) -> None:
        """Who was shown a status or a comment by being told of it, hears of its end as well."""
        for subject in (entry.shown_ids.status, entry.shown_ids.comment):
            if subject is not None:
                self._remember(subject)

    def _remember(self, subject: str) -> None:
        self._sent_subjects[subject] = None
        if len(self._sent_subjects) > MAX_REMEMBERED_SUBJECTS:
            forgotten = next(iter(self._sent_subjects))
            del self._sent_subjects[forgotten]
            self._memory_complete_after = max(self._memory_complete_after, int(forgotten))
