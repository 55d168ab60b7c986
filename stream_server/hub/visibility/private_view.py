"""The state of one stream that does not see the public view: the users whom it follows, and the ids that it was sent.

A stream whose filter is `follow=@me` has its own copy of the followed users, not the set that all streams of the user
share. The copy is exactly as old as the position of the stream, also while the stream catches up. Which entries the
user may see is a separate question: the shared `Viewer` answers it by today's relations. The stream remembers the
statuses and comments that it was sent, because their `delete` or `uncomment` must reach it too.
"""

from typing import NamedTuple

from filters.subscription import Subscription
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.hub.visibility.viewer import Viewer


class Deleted(NamedTuple):
    """The parts of an entry that users have deleted since the entry was written.

    ``subject``: whether the status or comment in the entry is deleted. ``original``: whether the status that it reposts
    or quotes is deleted.
    """

    subject: bool
    original: bool


NOTHING_DELETED = Deleted(subject=False, original=False)
"""The value for live delivery, and for entries of which nothing is deleted."""


def entry_to_match(entry: Entry, rendered: Entry) -> Entry:
    """Return the form of an entry against which filters are matched.

    A quote is matched as the client sees it, so that a filter does not find words of an original that is hidden from
    the client. Every other entry is matched as it was written: a repost with its original, even if that is deleted now.
    """
    return entry if entry.quoted_author is None else rendered


def remove_deleted(entry: Entry, rendered: Entry, deleted: Deleted) -> Entry:
    """Return ``rendered``, the visible form of ``entry``, without the parts that users have deleted.

    If it already differs from ``entry``, because it lacks a part, it is returned unchanged. An `uncomment` whose status
    is deleted keeps only its ids.
    """
    if rendered is not entry or (entry.is_removal and entry.kind != "uncomment"):
        return rendered
    if deleted.subject:
        return entry.without_status()
    return entry.without_original() if deleted.original else entry


class PrivateView:
    """Decides what one stream receives if its user has relations (blocks, mutes, protected users) or a personal filter.

    The stream remembers the statuses and comments that it was sent, because it must receive their deletion even if its
    filter does not match them any more. ``following`` contains all follows up to the log's head ``following_read_at``.

    Attributes:
        viewer: The relations of the user.
        following: Ids of the users that the filter follows. None if the filter does not use the user's follows.
        is_own_stream: Whether this is the user's own stream (`/v1/stream/user`), with notifications and messages.
    """

    __slots__ = ("_following_read_at", "_sent", "following", "is_own_stream", "viewer")

    def __init__(
        self,
        viewer: Viewer,
        *,
        following: dict[str, None] | None = None,
        following_read_at: Position = LOG_START,
        is_own_stream: bool = False,
    ) -> None:
        self.viewer = viewer
        self.following = following
        self.is_own_stream = is_own_stream
        self._following_read_at = following_read_at
        self._sent = viewer.sent_subjects.new_memory()

    @property
    def number(self) -> int:
        """The number of this view in the process, by which `SentSubjects` names it."""
        return self._sent.number

    def end(self) -> None:
        """Forget what the stream was sent: it has ended, or goes on with another view."""
        self._sent.end()

    def is_follow_change(self, entry: Entry) -> bool:
        """Return whether this entry changes the users that the stream's filter follows."""
        return (
            self.following is not None
            and entry.kind in ("follow", "unfollow")
            and entry.event.author == self.viewer.user_id
            and entry.position.n > self._following_read_at.n
        )

    def is_outdated_by_gap(self, gap_end: Position) -> bool:
        """Return whether a gap up to ``gap_end`` may hide a follow or unfollow that ``following`` should contain."""
        return self.following is not None and gap_end.n > self._following_read_at.n

    def apply_follow_change(self, entry: Entry) -> str | None:
        """Apply a follow or unfollow to ``following``. Return the id of its target user, None if it has no target."""
        target = next(iter(entry.event.user_ids - {self.viewer.user_id}), None)
        if target is None or self.following is None:
            return None
        if entry.kind == "follow":
            self.following[target] = None
        else:
            self.following.pop(target, None)
        return target

    def render(self, entry: Entry, subscription: Subscription, deleted: Deleted = NOTHING_DELETED) -> Entry | None:
        """Return the entry as this stream sees it, None if it is hidden or does not match.

        Remembers the ids of matching posts and comments, because the stream must receive their deletion later. Those
        that were visible when they were written, but are hidden or deleted today, are remembered too. A quote whose
        original is deleted is returned without the original.

        The stream gets a `delete` or `uncomment` if it was sent the removed status or comment, even if the user has
        unfollowed its author since. Otherwise it gets one that the filter matches and that the user could see at some
        time: a page may have shown it, also if it became visible only after this stream had passed it.
        """
        viewer = self.viewer
        if entry.is_removal:
            if not self.is_own_stream and viewer.is_for_own_streams(entry):
                return None  # what goes was never open, though it would be today: no other stream had it
            if (entry.subject_id or "") in self._sent:
                is_due = entry.kind in subscription.kinds
            else:
                is_due = self._may_match(entry, subscription) and (
                    self._match_rendered(entry, viewer.render_before_removal(entry), subscription) is not None
                )
            return viewer.render_removal(entry, own_stream=self.is_own_stream) if is_due else None
        if not self._may_match(entry, subscription):
            return None
        shown = None if deleted.subject else viewer.render_if_visible(entry, own_stream=self.is_own_stream)
        if shown is entry and deleted.original and entry.quoted_author is not None:
            shown = entry.without_original()
        shown = self._match_rendered(entry, shown, subscription)
        # Pages do not show the new text of an edit that is hidden now. An edit that was sent counts like a post.
        if entry.subject_id is not None and (
            shown
            or (
                entry.kind != "edit"
                and self._match_rendered(entry, viewer.render_before_removal(entry), subscription)
            )
        ):
            self._sent.remember(entry.subject_id or "")
        if shown is not None and entry.kind == "notification":
            for subject in (entry.shown_ids.status, entry.shown_ids.comment):
                if subject is not None:
                    self._sent.remember(subject)
        return shown

    def _may_match(self, entry: Entry, subscription: Subscription) -> bool:
        """Return False if the entry cannot match. Always True for a quote, which `_match_rendered` tests later."""
        return entry.quoted_author is not None or self.matches(entry, subscription)

    def _match_rendered(self, entry: Entry, rendered: Entry | None, subscription: Subscription) -> Entry | None:
        """Return the entry as this user sees it, or None if it is a quote and does not match in this form.

        `_may_match` has tested all other entries. It cannot test a quote, whose original may be hidden from the user.
        """
        if rendered is None or entry.quoted_author is None:
            return rendered  # `_may_match` has matched it already
        return rendered if self.matches(entry_to_match(entry, rendered), subscription) else None

    def matches(self, entry: Entry, subscription: Subscription) -> bool:
        """Return whether the filter matches.

        Entries for a user group or for named users match only on the user's own stream, if it asked for their kind.
        """
        if self.viewer.is_for_own_streams(entry):
            return self.is_own_stream and entry.kind in subscription.kinds
        return subscription.matches(entry.event)
