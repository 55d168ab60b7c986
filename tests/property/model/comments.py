"""Comments of statuses."""

from tests.property.model.access import HIDDEN, SHOWN
from tests.property.model.marks import action_audience
from tests.property.model.notices import Notice
from tests.property.model.noun import Noun
from tests.property.model.state import Comment, Refused


class Comments(Noun):
    """The comments of the model."""

    def create(self, comment: Comment) -> None:
        """Comment on a visible status. Notifies its author and the mentioned users."""
        self._state.writer(comment.uid)
        self._access.need_member(comment.uid, self._access.need(comment.uid, comment.status))
        self._state.comments[comment.id] = comment
        audience = action_audience(self._state, comment.uid, comment.status)
        self._state.audiences[comment.id] = audience
        self._state.log_event("comment", audience, comment=comment.id, status=comment.status)
        for receiver, notice in self._notices_of(comment):
            self._notices.give(receiver, notice)

    def delete(self, uid: str, comment_id: str) -> None:
        """Delete a comment: its author always may, the author of the status if it is visible."""
        self._state.writer(uid)
        kept = self._state.comments.get(comment_id)
        comment = kept if kept is not None and kept.uid == uid else self.get(uid, comment_id)
        if uid not in {comment.uid, self._state.statuses[comment.status].uid}:
            raise Refused("not_yours")
        self.remove(comment)

    def remove(self, comment: Comment) -> None:
        """Remove a comment and its notifications."""
        del self._state.comments[comment.id]
        audience = self._state.removal_audience(comment.id, self._state.audiences[comment.id])
        self._state.log_event("uncomment", audience, comment=comment.id, status=comment.status)
        for receiver, notice in self._notices_of(comment):
            self._notices.take(receiver, notice)

    def get(self, viewer: str, comment_id: str) -> Comment:
        comment = self._state.comments.get(comment_id)
        if comment is None or self._level(viewer, comment) == HIDDEN:
            raise Refused("not_found")
        return comment

    def page(self, viewer: str, sid: str) -> list[str]:
        self._access.need(viewer, sid)
        mine = (one for one in self._state.comments.values() if one.status == sid)
        return sorted((one.id for one in mine if self._level(viewer, one) == SHOWN), key=int)

    def _level(self, viewer: str, comment: Comment) -> int:
        status = self._access.status(viewer, comment.status)
        if status == HIDDEN:
            return HIDDEN
        return self._access.author(viewer, comment.uid, self._state.statuses[comment.status].group)

    def _notices_of(self, comment: Comment) -> list[tuple[str, Notice]]:
        found = dict.fromkeys(comment.mentions, "mention")
        found[self._state.statuses[comment.status].uid] = "comment"
        return [(uid, Notice(kind, comment.uid, comment.status, comment.id)) for uid, kind in found.items()]
