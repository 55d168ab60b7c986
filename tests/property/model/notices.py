"""Notifications: who is told of what, once, and no longer when it was undone."""

from typing import NamedTuple

from tests.property.model.ground import Comment, Ground, Refused, Status, among
from tests.property.model.sight import HIDDEN, SHOWN, Eyes


class Notice(NamedTuple):
    """What makes a notification the same as another: its kind, whose deed it is, and of what."""

    kind: str
    source: str
    status: str = ""
    comment: str = ""


class Notices:
    """The notifications of the model, by receiver."""

    def __init__(self, ground: Ground, eyes: Eyes) -> None:
        self._ground = ground
        self._eyes = eyes
        self.kept: dict[str, dict[Notice, int]] = {}
        self.marks: dict[str, int] = {}
        self._given: dict[str, int] = {}

    def give(self, receiver: str, notice: Notice) -> None:
        """Notify, unless it is one's own deed, was told before, or may not be seen."""
        held = self.kept.setdefault(receiver, {})
        if receiver == notice.source or notice in held or not self.heard(receiver, notice):
            return
        held[notice] = self._ground.tick()
        self._given[receiver] = self._given.get(receiver, 0) + 1
        self._ground.tell(
            "notification", among(receiver), what=notice.kind, source=notice.source,
            status=notice.status, comment=notice.comment,
        )  # fmt: skip

    def take(self, receiver: str, notice: Notice) -> None:
        """Take a notification back."""
        self.kept.get(receiver, {}).pop(notice, None)

    def heard(self, receiver: str, notice: Notice) -> bool:
        """Whether the receiver may see it, now: muted ones do not speak, hidden ones are not there."""
        if not self._eyes.knows(receiver, notice.source) or self._eyes.blocked(receiver, notice.source):
            return False
        if (receiver, notice.source) in self._ground.mutes:
            return False
        if notice.comment:
            return self._comment_shown(receiver, self._ground.comments.get(notice.comment))
        return not notice.status or self._eyes.status(receiver, notice.status) == SHOWN

    def _comment_shown(self, receiver: str, comment: Comment | None) -> bool:
        if comment is None:
            return False
        status: Status | None = self._ground.statuses.get(comment.status)
        return (
            status is not None
            and self._eyes.status(receiver, status.id) > HIDDEN
            and self._eyes.author(receiver, comment.uid, status.group) == SHOWN
        )

    def overflowed(self, uid: str) -> bool:
        """Whether somebody was told so much that old ones may have gone; what was taken back may count, or not."""
        return self._given.get(uid, 0) > self._ground.cap

    def mark_read(self, uid: str, notice: Notice | None) -> None:
        """All up to this one are read; refused for one that never was."""
        self._ground.writer(uid)
        if notice is None:
            raise Refused("not_found")
        self.marks[uid] = max(self.marks.get(uid, 0), self.kept[uid][notice])

    def read(self, uid: str, notice: Notice) -> bool:
        """Whether it was read."""
        return self.kept[uid][notice] <= self.marks.get(uid, 0)

    def unread(self, uid: str) -> int:
        """How many of those shown were not read."""
        return sum(not self.read(uid, notice) for notice in self.page(uid))

    def page(self, viewer: str) -> list[Notice]:
        """What ``viewer`` reads, newest first."""
        held = self.kept.get(viewer, {})
        return [notice for notice in sorted(held, key=lambda one: -held[one]) if self.heard(viewer, notice)]
