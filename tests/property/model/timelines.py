"""Homes and list timelines by the rules of the chapter, and every other list of statuses."""

from collections.abc import Iterable

from tests.property.model.ground import Ground, Refused, Status, sources, targets
from tests.property.model.sight import QUIET, SHOWN, Eyes


class Timelines:
    """Derived timelines: kept as sets of ids, trimmed to the newest ``cap``."""

    def __init__(self, ground: Ground, eyes: Eyes) -> None:
        self._ground = ground
        self._eyes = eyes
        self.homes: dict[str, set[str]] = {}
        self.lists: dict[str, set[str]] = {}
        self.tags: dict[str, set[str]] = {}
        self.mentions: dict[str, set[str]] = {}
        self.groups: dict[str, set[str]] = {}
        self._short_homes: set[str] = set()
        self._short_lists: set[str] = set()

    # -- what happens

    def posted(self, status: Status) -> None:
        """A post goes where it is read: one in a group there only."""
        for uid in status.mentions:
            self.mentions.setdefault(uid, set()).add(status.id)
        if status.group is not None:
            self._add(self.groups, status.group, [status.id])
            return
        for tag in status.tags:
            self.tags.setdefault(tag, set()).add(status.id)
        for uid in (status.uid, *sources(self._ground.follows, status.uid)):
            self._add(self.homes, uid, [status.id])
        for roll in self._ground.lists.values():
            if status.uid in roll.members:
                self._add(self.lists, roll.id, [status.id])

    def deleted(self, sid: str) -> None:
        """A delete takes it out everywhere."""
        for kept in (self.homes, self.lists, self.tags, self.mentions, self.groups):
            for held in kept.values():
                held.discard(sid)

    def followed(self, source: str, target: str) -> None:
        """The newest posts of the followed come in."""
        self._add(self.homes, source, self.newest(target))

    def unfollowed(self, source: str, target: str) -> None:
        """The posts of the one left go out; what is left too short is refilled when the jobs run."""
        if self._remove(self.homes, source, target):
            self._short_homes.add(source)

    def listed(self, list_id: str, target: str) -> None:
        """The newest posts of a new member come in."""
        self._add(self.lists, list_id, self.newest(target))

    def unlisted(self, list_id: str, target: str) -> None:
        """The posts of a former member go out."""
        if self._remove(self.lists, list_id, target):
            self._short_lists.add(list_id)

    def dropped(self, list_id: str) -> None:
        """A list is gone."""
        self.lists.pop(list_id, None)

    def settle(self) -> None:
        """What jobs do: refill what an unfollow has left too short, from oneself and all still followed."""
        for uid in self._short_homes:
            for target in (uid, *targets(self._ground.follows, uid)):
                self._add(self.homes, uid, self.newest(target))
        for list_id in self._short_lists & set(self._ground.lists):
            for member in self._ground.lists[list_id].members:
                self._add(self.lists, list_id, self.newest(member))
        self._short_homes.clear()
        self._short_lists.clear()

    def newest(self, uid: str) -> list[str]:
        """The newest ``cap`` ids of somebody's profile."""
        mine = [one.id for one in self._ground.statuses.values() if one.uid == uid and one.group is None]
        return sorted(mine, key=int, reverse=True)[: self._ground.cap]

    # -- what is read

    def home(self, viewer: str) -> list[str]:
        return self._seen(viewer, self.homes.get(viewer, set()), SHOWN)

    def profile(self, viewer: str, uid: str) -> list[str]:
        self._eyes.need_person(viewer, uid)
        mine = (one.id for one in self._ground.statuses.values() if one.uid == uid and one.group is None)
        return self._seen(viewer, mine, QUIET)

    def of_list(self, viewer: str, list_id: str) -> list[str]:
        roll = self._ground.lists.get(list_id)
        if roll is None or not self._eyes.knows(viewer, roll.uid) or (roll.private and roll.uid != viewer):
            raise Refused("not_found")
        return self._seen(viewer, self.lists.get(list_id, set()), SHOWN)

    def of_group(self, viewer: str, gid: str) -> list[str]:
        if not self._eyes.group(viewer, gid):
            raise Refused("not_found")
        return self._seen(viewer, self.groups.get(gid, set()), SHOWN)

    def of_tag(self, viewer: str, tag: str) -> list[str]:
        return self._seen(viewer, self.tags.get(tag, set()), SHOWN)

    def mentioning(self, viewer: str) -> list[str]:
        return self._seen(viewer, self.mentions.get(viewer, set()), SHOWN)

    def reposts(self, viewer: str, sid: str) -> list[str]:
        self._eyes.need(viewer, sid)
        return self._seen(viewer, (one.id for one in self._ground.statuses.values() if one.origin == sid), SHOWN)

    def replies(self, viewer: str, sid: str) -> list[str]:
        """Direct replies, newest first."""
        self._eyes.need(viewer, sid)
        return self._seen(viewer, (one.id for one in self._ground.statuses.values() if one.in_reply_to == sid), SHOWN)

    def conversation(self, viewer: str, sid: str) -> list[str]:
        """The whole thread that a status belongs to, oldest first."""
        root = self._eyes.need(viewer, sid).conversation
        found = (one.id for one in self._ground.statuses.values() if one.conversation == root)
        return self._seen(viewer, found, SHOWN)[::-1]

    def liked(self, viewer: str, uid: str) -> list[str]:
        """What somebody likes, the newest like first, for those who see what they do."""
        self._eyes.need_person(viewer, uid)
        seen = [sid for sid in targets(self._ground.likes, uid) if self._eyes.status(viewer, sid) >= QUIET]
        return [sid for sid in seen if self._eyes.author(viewer, uid, self._ground.statuses[sid].group) >= QUIET]

    def favorites(self, viewer: str) -> list[str]:
        return [sid for sid in targets(self._ground.favorites, viewer) if self._eyes.status(viewer, sid) >= QUIET]

    # -- inside

    def _seen(self, viewer: str, ids: Iterable[str], least: int) -> list[str]:
        return sorted((sid for sid in ids if self._eyes.status(viewer, sid) >= least), key=int, reverse=True)

    def _add(self, kept: dict[str, set[str]], key: str, ids: Iterable[str]) -> None:
        both = kept.setdefault(key, set()) | set(ids)
        kept[key] = set(sorted(both, key=int, reverse=True)[: self._ground.cap])

    def _remove(self, kept: dict[str, set[str]], key: str, author: str) -> bool:
        """Whether what is left is under three quarters of the cap."""
        held = kept.setdefault(key, set())
        held -= {sid for sid in held if self._ground.statuses[sid].uid == author}
        return len(held) < self._ground.cap * 3 / 4
