"""Comments of statuses."""

from tests.property.model.ground import Comment, Ground, Refused
from tests.property.model.marks import deed_audience
from tests.property.model.notices import Notice, Notices
from tests.property.model.sight import HIDDEN, SHOWN, Eyes


class Comments:
    """The comments of the model."""

    def __init__(self, ground: Ground, eyes: Eyes, notices: Notices) -> None:
        self._ground = ground
        self._eyes = eyes
        self._notices = notices

    def create(self, comment: Comment) -> None:
        """Comment on what one sees; its author and those mentioned are told."""
        self._ground.writer(comment.uid)
        self._eyes.need_member(comment.uid, self._eyes.need(comment.uid, comment.status))
        self._ground.comments[comment.id] = comment
        self._tell("comment", comment)
        for receiver, notice in self._notices_of(comment):
            self._notices.give(receiver, notice)

    def delete(self, uid: str, comment_id: str) -> None:
        """By who wrote it, seen or not, or by the author of what it stands under."""
        self._ground.writer(uid)
        kept = self._ground.comments.get(comment_id)
        comment = kept if kept is not None and kept.uid == uid else self.get(uid, comment_id)
        if uid not in {comment.uid, self._ground.statuses[comment.status].uid}:
            raise Refused("not_yours")
        del self._ground.comments[comment_id]
        self._tell("uncomment", comment)
        for receiver, notice in self._notices_of(comment):
            self._notices.take(receiver, notice)

    def get(self, viewer: str, comment_id: str) -> Comment:
        """A comment, if both it and its status are seen."""
        comment = self._ground.comments.get(comment_id)
        if comment is None or self._level(viewer, comment) == HIDDEN:
            raise Refused("not_found")
        return comment

    def page(self, viewer: str, sid: str) -> list[str]:
        """The comments of a status, oldest first."""
        self._eyes.need(viewer, sid)
        mine = (one for one in self._ground.comments.values() if one.status == sid)
        return sorted((one.id for one in mine if self._level(viewer, one) == SHOWN), key=int)

    def _level(self, viewer: str, comment: Comment) -> int:
        status = self._eyes.status(viewer, comment.status)
        if status == HIDDEN:
            return HIDDEN
        return self._eyes.author(viewer, comment.uid, self._ground.statuses[comment.status].group)

    def _tell(self, kind: str, comment: Comment) -> None:
        audience = deed_audience(self._ground, comment.uid, comment.status)
        self._ground.tell(kind, audience, comment=comment.id, status=comment.status)

    def _notices_of(self, comment: Comment) -> list[tuple[str, Notice]]:
        found = dict.fromkeys(comment.mentions, "mention")
        found[self._ground.statuses[comment.status].uid] = "comment"
        return [(uid, Notice(kind, comment.uid, comment.status, comment.id)) for uid, kind in found.items()]
