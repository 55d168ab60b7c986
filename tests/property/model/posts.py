"""Statuses: created with their references, edited, and deleted with all that depends on them."""

from dataclasses import replace

from tests.property.model.notices import Notice
from tests.property.model.noun import Noun
from tests.property.model.state import Refused, Status


class Posts(Noun):
    """The statuses of the model."""

    def create(self, draft: Status) -> None:
        """Post a status. ``draft`` has what the author gave; the model adds the rest."""
        self._state.writer(draft.uid)
        answering = self._answering(draft)
        if answering.group is not None:
            self._may_speak(draft.uid, answering.group)
        status = self._placed(self._repeating(answering))
        self._state.statuses[status.id] = status
        self._state.log_event("post", status.audience, status=status.id)
        self._timelines.posted(status)
        for receiver, notice in self._notices_of(status):
            self._notices.give(receiver, notice)

    def edit(self, uid: str, sid: str, message: str, mentions: tuple[str, ...], tags: tuple[str, ...]) -> None:
        """Give a status of the user's own another message. Only who is mentioned now, and was not, is notified."""
        status = self._own(uid, sid)
        if status.wordless:
            raise Refused("invalid_parameter")
        if status.group is not None:
            self._may_speak(uid, status.group)
        edited = replace(status, message=message, mentions=mentions, tags=tags)
        self._state.statuses[sid] = edited
        self._state.log_event("edit", self._state.removal_audience(sid, status.audience), status=sid)
        self._timelines.edited(status, edited)
        before, after = (set(self._notices_of(one)) for one in (status, edited))
        for receiver, notice in before - after:
            self._notices.take(receiver, notice)
        for receiver, notice in after - before:
            self._notices.give(receiver, notice)

    def delete(self, uid: str, sid: str) -> None:
        """Delete a status of the user's own, also a hidden one, with its likes, comments and notifications."""
        self.remove(self._own(uid, sid))

    def _own(self, uid: str, sid: str) -> Status:
        """Return a status that its author ``uid`` changes, also a hidden one."""
        self._state.writer(uid)
        status = self._state.statuses.get(sid)
        if status is None:
            raise Refused("not_found")
        if status.uid != uid:
            self._access.need(uid, sid)
            raise Refused("not_yours")
        return status

    def remove(self, status: Status) -> None:
        """Remove a status with all that depends on it."""
        sid = status.id
        del self._state.statuses[sid]
        self._state.log_event("delete", self._state.removal_audience(sid, status.audience), status=sid)
        self._timelines.deleted(sid)
        for receiver, notice in self._notices_of(status):
            self._notices.take(receiver, notice)
        for pair in [one for one in self._state.likes if one[1] == sid]:
            del self._state.likes[pair]
        for comment in [one for one in self._state.comments.values() if one.status == sid]:
            del self._state.comments[comment.id]

    def counts(self, sid: str) -> tuple[int, int, int]:
        """The numbers of likes, comments and reposts."""
        return (
            sum(one == sid for _, one in self._state.likes),
            sum(comment.status == sid for comment in self._state.comments.values()),
            sum(status.origin == sid for status in self._state.statuses.values()),
        )

    def original(self, viewer: str, status: Status, least: int) -> Status | None:
        """The original that a repost or quote shows, if it is visible enough."""
        if status.origin is None or self._access.status(viewer, status.origin) < least:
            return None
        return self._state.statuses[status.origin]

    # -- inside

    def _answering(self, draft: Status) -> Status:
        """A reply is in the conversation and the group of its parent."""
        if draft.in_reply_to is None:
            return replace(draft, conversation=draft.id)
        parent = self._access.need(draft.uid, draft.in_reply_to)
        if draft.group not in {None, parent.group}:
            raise Refused("invalid_parameter")
        return replace(draft, in_reply_to_uid=parent.uid, conversation=parent.conversation, group=parent.group)

    def _repeating(self, draft: Status) -> Status:
        """A repost refers to the root, stays in its group, and does not spread protected statuses."""
        if draft.origin is None:
            return draft
        original = self._access.need(draft.uid, draft.origin)
        if original.wordless:
            original = self._access.need(draft.uid, original.origin or "")
        if original.group not in {None, draft.group}:
            raise Refused("invalid_parameter")
        open_to_all = original.audience == "public" and not self._state.people[original.uid].protected
        if original.uid != draft.uid and original.group is None and not open_to_all:
            raise Refused("invalid_parameter")
        return replace(draft, origin=original.id)

    def _placed(self, draft: Status) -> Status:
        if draft.group is None:
            protected = self._state.people[draft.uid].protected
            return replace(draft, audience=f"followers:{draft.uid}" if protected else "public")
        return replace(draft, audience=f"group:{draft.group}")

    def _may_speak(self, uid: str, gid: str) -> None:
        """Members post in a group, and only the owner in an announcement group."""
        if not self._access.group(uid, gid):
            raise Refused("not_found")
        group = self._state.groups[gid]
        if uid not in group.members or (group.kind == "announcement" and group.uid != uid):
            raise Refused("not_yours")

    def _notices_of(self, status: Status) -> list[tuple[str, Notice]]:
        """The receivers of a status and their notifications. A reply replaces a mention."""
        found: list[tuple[str, str]] = []
        original = self._state.statuses.get(status.origin or "")
        if original is not None:
            found.append((original.uid, "quote" if status.message else "repost"))
        if status.in_reply_to_uid is not None:
            found.append((status.in_reply_to_uid, "reply"))
        found += [(uid, "mention") for uid in dict.fromkeys(status.mentions) if uid != status.in_reply_to_uid]
        return [(uid, Notice(kind, status.uid, status.id)) for uid, kind in found]
