"""Statuses: made, with what they point to, and deleted, with what hung on them."""

from dataclasses import replace

from tests.property.model.ground import Ground, Refused, Status
from tests.property.model.notices import Notice, Notices
from tests.property.model.sight import Eyes
from tests.property.model.timelines import Timelines


class Posts:
    """The statuses of the model."""

    def __init__(self, ground: Ground, eyes: Eyes, timelines: Timelines, notices: Notices) -> None:
        self._ground = ground
        self._eyes = eyes
        self._timelines = timelines
        self._notices = notices

    def create(self, draft: Status) -> None:
        """Post; ``draft`` has what its author gave, the rest follows from what there is."""
        self._ground.writer(draft.uid)
        answering = self._answering(draft)
        if answering.group is not None:
            self._may_speak(draft.uid, answering.group)
        status = self._placed(self._repeating(answering))
        self._ground.statuses[status.id] = status
        self._ground.tell("post", status.audience, status=status.id)
        self._timelines.posted(status)
        for receiver, notice in self._notices_of(status):
            self._notices.give(receiver, notice)

    def delete(self, uid: str, sid: str) -> None:
        """Only by its author, also what shows nothing any more; likes, comments and what was told go with it."""
        status = self._ground.statuses.get(sid)
        if status is None or self._ground.person(status.uid).suspended:
            raise Refused("not_found")
        if status.uid != uid:
            self._eyes.need(uid, sid)
            raise Refused("not_yours")
        del self._ground.statuses[sid]
        self._ground.tell("delete", status.audience, status=sid)
        self._timelines.deleted(sid)
        for receiver, notice in self._notices_of(status):
            self._notices.take(receiver, notice)
        for pair in [one for one in self._ground.likes if one[1] == sid]:
            del self._ground.likes[pair]
        for comment in [one for one in self._ground.comments.values() if one.status == sid]:
            del self._ground.comments[comment.id]

    def counts(self, sid: str) -> tuple[int, int, int]:
        """Likes, comments and reposts."""
        return (
            sum(one == sid for _, one in self._ground.likes),
            sum(comment.status == sid for comment in self._ground.comments.values()),
            sum(status.origin == sid for status in self._ground.statuses.values()),
        )

    def original(self, viewer: str, status: Status, least: int) -> Status | None:
        """What a repost or quote shows: nothing of what is gone, or is seen less than where it is shown asks."""
        if status.origin is None or self._eyes.status(viewer, status.origin) < least:
            return None
        return self._ground.statuses[status.origin]

    # -- inside

    def _answering(self, draft: Status) -> Status:
        """A reply belongs to the conversation, and to the group, of what it answers."""
        if draft.in_reply_to is None:
            return replace(draft, conversation=draft.id)
        parent = self._eyes.need(draft.uid, draft.in_reply_to)
        if draft.group not in {None, parent.group}:
            raise Refused("invalid_parameter")
        return replace(draft, in_reply_to_uid=parent.uid, conversation=parent.conversation, group=parent.group)

    def _repeating(self, draft: Status) -> Status:
        """A repost points to the root, stays in its group, and does not carry what is protected elsewhere."""
        if draft.origin is None:
            return draft
        original = self._eyes.need(draft.uid, draft.origin)
        if original.wordless:
            original = self._eyes.need(draft.uid, original.origin or "")
        if original.group not in {None, draft.group}:
            raise Refused("invalid_parameter")
        open_to_all = original.audience == "public" and not self._ground.people[original.uid].protected
        if original.uid != draft.uid and original.group is None and not open_to_all:
            raise Refused("invalid_parameter")
        return replace(draft, origin=original.id)

    def _placed(self, draft: Status) -> Status:
        """Where it is posted decides who may hear of it."""
        if draft.group is None:
            protected = self._ground.people[draft.uid].protected
            return replace(draft, audience=f"followers:{draft.uid}" if protected else "public")
        return replace(draft, audience=f"group:{draft.group}")

    def _may_speak(self, uid: str, gid: str) -> None:
        """In a group its members speak, in an announcing one its owner."""
        if not self._eyes.group(uid, gid):
            raise Refused("not_found")
        group = self._ground.groups[gid]
        if uid not in group.members or (group.kind == "announcement" and group.uid != uid):
            raise Refused("not_yours")

    def _notices_of(self, status: Status) -> list[tuple[str, Notice]]:
        """Everyone whom a status concerns, and how: who is answered is not told of a mention besides."""
        found: list[tuple[str, str]] = []
        original = self._ground.statuses.get(status.origin or "")
        if original is not None:
            found.append((original.uid, "quote" if status.message else "repost"))
        if status.in_reply_to_uid is not None:
            found.append((status.in_reply_to_uid, "reply"))
        found += [(uid, "mention") for uid in dict.fromkeys(status.mentions) if uid != status.in_reply_to_uid]
        return [(uid, Notice(kind, status.uid, status.id)) for uid, kind in found]
