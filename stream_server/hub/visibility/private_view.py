"""The state of one stream that does not see the public view: its follow set, and what was sent to it.

A stream whose filter follows the graph has its own copy of the followed users, not the set that all streams of the
user share. The copy is exactly as old as the position of the stream, also while the stream catches up. Which entries
the user may see is a separate question: the shared `Viewer` answers it by today's relations. The stream remembers the
statuses and comments that it was sent, because their `delete` or `uncomment` must reach it too.
"""

from collections.abc import MutableSet

from filters.subscription import Subscription
from stream_server.events.entry import Entry
from stream_server.events.kinds import CREATION_KINDS, DELETION_KINDS, FOLLOWERS_PREFIX, PUBLIC_AUDIENCE
from stream_server.events.position import Position
from stream_server.hub.visibility.rendering import NOTHING_DELETED, Deleted, entry_to_match
from stream_server.hub.visibility.viewer import Viewer

MAX_REMEMBERED_SUBJECTS = 4096
"""Number of delivered statuses and comments that a stream remembers, the latest ones."""


class PrivateView:
    """The view of one stream whose user has blocks, mutes, protected users among those followed, or a personal filter.

    ``start_position`` is where the stream begins. A status that was written after it and is not remembered was never
    sent. ``following_read_at`` is the head at which ``following`` was copied: earlier entries are in it already.

    Attributes:
        viewer: The relations of the user.
        following: Ids of the users that the filter follows. None if the filter does not follow the graph.
        is_own_stream: Whether this is the user's own stream (`/v1/stream/user`), with notifications and messages.
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
        """Id of the stream's user."""
        return self.viewer.user_id

    def is_follow_change(self, entry: Entry) -> bool:
        """Return whether this entry changes the users that the stream's filter follows."""
        return (
            self.following is not None
            and entry.kind in ("follow", "unfollow")
            and entry.event.author == self.user_id
            and entry.position.n > self._following_read_at.n
        )

    def is_outdated_by_gap(self, gap_end: Position) -> bool:
        """Return whether a gap up to ``gap_end`` may have hidden a follow or unfollow that is not in the follow set."""
        return self.following is not None and gap_end.n > self._following_read_at.n

    def apply_follow_change(self, entry: Entry) -> str | None:
        """Apply a follow or unfollow to the follow set.

        Return the id of the other user, None if the entry names none.
        """
        target = next(iter(entry.event.user_ids - {self.user_id}), None)
        if target is None or self.following is None:
            return None
        if entry.kind == "follow":
            self.following.add(target)
        else:
            self.following.discard(target)
        return target

    def render(self, entry: Entry, subscription: Subscription, deleted: Deleted = NOTHING_DELETED) -> Entry | None:
        """Return the entry as this stream sees it, None if it is hidden or does not match. Remember posts and comments.

        A post or comment is also remembered if it was visible when it was written but is not today, or is deleted by
        now: the `delete` carries ids only and must be sent. A quote whose original is deleted is returned without it.
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
        """Return whether the entry matches.

        A quote may match in the form in which it is shown, so the answer is True.
        """
        return entry.quoted_author is not None or self._matches(entry, subscription)

    def _match_rendered(self, entry: Entry, rendered: Entry | None, subscription: Subscription) -> Entry | None:
        """Return ``rendered`` if it matches in this form, otherwise None. Only a quote has to be matched again."""
        if rendered is None or entry.quoted_author is None:
            return rendered  # `_may_match` has matched it already
        return rendered if self._matches(entry_to_match(entry, rendered), subscription) else None

    def _matches(self, entry: Entry, subscription: Subscription) -> bool:
        """Return whether the stream asks for the entry: by its filter, or by kind for an entry for certain users.

        Only the user's own stream receives entries for certain users or for a group.
        """
        if entry.audience == PUBLIC_AUDIENCE or entry.audience.startswith(FOLLOWERS_PREFIX):
            return subscription.matches(entry.event)
        return self.is_own_stream and entry.kind in subscription.kinds

    def _should_send_removal(self, entry: Entry, subscription: Subscription) -> bool:
        """Return whether to send a removal.

        Send it if the stream was sent the removed status, even after an unfollow. Skip it if the stream certainly was
        not. Otherwise send it if the status matches and was visible when it was written.
        """
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
        """Remember the status and comment that a notification shows, so that their removal is sent too."""
        for subject in (entry.shown_ids.status, entry.shown_ids.comment):
            if subject is not None:
                self._remember(subject)

    def _remember(self, subject: str) -> None:
        """Remember the id of a sent status or comment, and forget the oldest one if there are too many."""
        self._sent_subjects[subject] = None
        if len(self._sent_subjects) > MAX_REMEMBERED_SUBJECTS:
            forgotten = next(iter(self._sent_subjects))
            del self._sent_subjects[forgotten]
            self._memory_complete_after = max(self._memory_complete_after, int(forgotten))
