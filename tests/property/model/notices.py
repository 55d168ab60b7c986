"""Notifications: each is sent once, and removed when its action is undone."""

from typing import NamedTuple

from tests.property.model.access import HIDDEN, SHOWN, Access
from tests.property.model.state import Comment, Refused, State, Status, among


class Notice(NamedTuple):
    """The identity of a notification: its kind, its source, and its subject."""

    kind: str
    source: str
    status: str = ""
    comment: str = ""


class Notices:
    """The notifications of the model, by receiver."""

    def __init__(self, ground: State, access: Access) -> None:
        self._state = ground
        self._access = access
        self.kept: dict[str, dict[Notice, int]] = {}
        self.marks: dict[str, int] = {}
        self._given: dict[str, int] = {}

    def give(self, receiver: str, notice: Notice) -> None:
        """Notify, unless the action is the receiver's own, was notified before, or is hidden."""
        held = self.kept.setdefault(receiver, {})
        if receiver == notice.source or notice in held or not self.is_visible(receiver, notice):
            return
        held[notice] = self._state.tick()
        self._given[receiver] = self._given.get(receiver, 0) + 1
        self._state.log_event(
            "notification", among(receiver), what=notice.kind, source=notice.source,
            status=notice.status, comment=notice.comment,
        )  # fmt: skip

    def take(self, receiver: str, notice: Notice) -> None:
        self.kept.get(receiver, {}).pop(notice, None)

    def forget(self, uid: str) -> None:
        """Remove the notifications of a user who is gone, and those that the user caused."""
        self.kept.pop(uid, None)
        for held in self.kept.values():
            for notice in [one for one in held if one.source == uid]:
                del held[notice]

    def is_visible(self, receiver: str, notice: Notice) -> bool:
        """Whether the receiver may see the notification now."""
        if not self._access.knows(receiver, notice.source) or self._access.blocked(receiver, notice.source):
            return False
        if (receiver, notice.source) in self._state.mutes:
            return False
        if notice.comment:
            return self._comment_shown(receiver, self._state.comments.get(notice.comment))
        return not notice.status or self._access.status(receiver, notice.status) == SHOWN

    def _comment_shown(self, receiver: str, comment: Comment | None) -> bool:
        if comment is None:
            return False
        status: Status | None = self._state.statuses.get(comment.status)
        return (
            status is not None
            and self._access.status(receiver, status.id) > HIDDEN
            and self._access.author(receiver, comment.uid, status.group) == SHOWN
        )

    def overflowed(self, uid: str) -> bool:
        """Whether so many were sent that old ones may be gone. Removed ones may count."""
        return self._given.get(uid, 0) > self._state.cap

    def mark_read(self, uid: str, notice: Notice | None) -> None:
        self._state.writer(uid)
        if notice is None:
            raise Refused("not_found")
        self.marks[uid] = max(self.marks.get(uid, 0), self.kept[uid][notice])

    def read(self, uid: str, notice: Notice) -> bool:
        return self.kept[uid][notice] <= self.marks.get(uid, 0)

    def unread(self, uid: str) -> int:
        return sum(not self.read(uid, notice) for notice in self.page(uid))

    def page(self, viewer: str) -> list[Notice]:
        held = self.kept.get(viewer, {})
        return [notice for notice in sorted(held, key=lambda one: -held[one]) if self.is_visible(viewer, notice)]
