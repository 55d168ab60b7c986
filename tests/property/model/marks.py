"""Likes, which are told, and favorites, which are nobody else's business."""

from tests.property.model.ground import Ground, among, sources
from tests.property.model.notices import Notice, Notices
from tests.property.model.sight import HIDDEN, Eyes


def deed_audience(ground: Ground, actor: str, sid: str) -> str:
    """Who may hear that ``actor`` did something to a status."""
    status = ground.statuses[sid]
    if status.group is not None:
        return f"group:{status.group}"
    protected = [uid for uid in dict.fromkeys((actor, status.uid)) if ground.people[uid].protected]
    if len(protected) == 2:
        return among(*protected)
    return f"followers:{protected[0]}" if protected else "public"


class Marks:
    """What users have marked."""

    def __init__(self, ground: Ground, eyes: Eyes, notices: Notices) -> None:
        self._ground = ground
        self._eyes = eyes
        self._notices = notices

    def like(self, uid: str, sid: str) -> None:
        """Twice is once."""
        self._ground.writer(uid)
        status = self._eyes.need(uid, sid)
        self._eyes.need_member(uid, status)
        if (uid, sid) not in self._ground.likes:
            self._ground.likes[uid, sid] = self._ground.tick()
            self._ground.tell("like", deed_audience(self._ground, uid, sid), source=uid, status=sid)
            self._notices.give(status.uid, Notice("like", uid, sid))

    def unlike(self, uid: str, sid: str) -> None:
        """What is liked can be taken back, seen or not; what was not liked is not liked."""
        self._ground.writer(uid)
        if (uid, sid) not in self._ground.likes:
            self._eyes.need(uid, sid)
        else:
            status = self._ground.statuses[sid]
            del self._ground.likes[uid, sid]
            self._ground.tell("unlike", deed_audience(self._ground, uid, sid), source=uid, status=sid)
            self._notices.take(status.uid, Notice("like", uid, sid))

    def add(self, uid: str, sid: str) -> None:
        """Keep a status for oneself."""
        self._ground.writer(uid)
        self._eyes.need(uid, sid)
        self._ground.favorites.setdefault((uid, sid), self._ground.tick())

    def remove(self, uid: str, sid: str) -> None:
        """Keep it no longer, whatever has become of it."""
        self._ground.writer(uid)
        if self._ground.favorites.pop((uid, sid), None) is None:
            self._eyes.need(uid, sid)

    def likers(self, viewer: str, sid: str) -> list[str]:
        """Who likes it, the newest first; what those do who are protected is their followers' business."""
        group = self._eyes.need(viewer, sid).group
        return [uid for uid in sources(self._ground.likes, sid) if self._eyes.author(viewer, uid, group) > HIDDEN]

    def has_liked(self, viewer: str, sid: str, uid: str) -> bool:
        self._eyes.need(viewer, sid)
        return (uid, sid) in self._ground.likes

    def has_kept(self, viewer: str, sid: str) -> bool:
        self._eyes.need(viewer, sid)
        return (viewer, sid) in self._ground.favorites
