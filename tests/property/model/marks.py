"""Likes, which are logged, and favorites, which are private."""

from tests.property.model.access import HIDDEN
from tests.property.model.notices import Notice
from tests.property.model.noun import Noun
from tests.property.model.state import State, among, sources


def action_audience(ground: State, actor: str, sid: str) -> str:
    """The audience of an action of ``actor`` on a status."""
    status = ground.statuses[sid]
    if status.group is not None:
        return f"group:{status.group}"
    protected = [uid for uid in dict.fromkeys((actor, status.uid)) if ground.people[uid].protected]
    if len(protected) == 2:
        return among(*protected)
    return f"followers:{protected[0]}" if protected else "public"


class Marks(Noun):
    """The likes and favorites of the model."""

    def like(self, uid: str, sid: str) -> None:
        self._state.writer(uid)
        status = self._access.need(uid, sid)
        self._access.need_member(uid, status)
        if (uid, sid) not in self._state.likes:
            self._state.likes[uid, sid] = self._state.tick()
            self._state.log_event("like", action_audience(self._state, uid, sid), source=uid, status=sid)
            self._notices.give(status.uid, Notice("like", uid, sid))

    def unlike(self, uid: str, sid: str) -> None:
        """Take a like back, also from a hidden status. Nothing happens to a visible status without it."""
        self._state.writer(uid)
        if (uid, sid) not in self._state.likes:
            self._access.need(uid, sid)
        else:
            status = self._state.statuses[sid]
            del self._state.likes[uid, sid]
            self._state.log_event("unlike", action_audience(self._state, uid, sid), source=uid, status=sid)
            self._notices.take(status.uid, Notice("like", uid, sid))

    def add(self, uid: str, sid: str) -> None:
        self._state.writer(uid)
        self._access.need(uid, sid)
        self._state.favorites.setdefault((uid, sid), self._state.tick())

    def remove(self, uid: str, sid: str) -> None:
        self._state.writer(uid)
        if self._state.favorites.pop((uid, sid), None) is None:
            self._access.need(uid, sid)

    def likers(self, viewer: str, sid: str) -> list[str]:
        """The visible users who like a status, newest first."""
        group = self._access.need(viewer, sid).group
        return [uid for uid in sources(self._state.likes, sid) if self._access.author(viewer, uid, group) > HIDDEN]

    def has_liked(self, viewer: str, sid: str) -> bool:
        self._access.need(viewer, sid)
        return (viewer, sid) in self._state.likes

    def has_kept(self, viewer: str, sid: str) -> bool:
        self._access.need(viewer, sid)
        return (viewer, sid) in self._state.favorites
